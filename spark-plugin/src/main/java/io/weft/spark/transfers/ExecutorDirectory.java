package io.weft.spark.transfers;

import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Device;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerDirectory;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers.TransferMembership;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The application's executors, by their announcements to the driver. Each has its host as device 0
 * and its GPU, if it has one, as device 1. An executor id has one incarnation only. Keeps the
 * addresses of executors until they have ended. Thread-safe.
 */
final class ExecutorDirectory implements TransferMembership {
  static final int HOST = 0;
  static final int GPU = 1;

  private final PeerAddress own;
  private final PeerDirectory peers;
  private final Map<String, PeerAddress> known = new ConcurrentHashMap<>();

  ExecutorDirectory(PeerAddress own, PeerDirectory peers) {
    this.own = own;
    this.peers = peers;
    known.put(own.executorId(), own);
  }

  @Override
  public String executor() {
    return own.executorId();
  }

  @Override
  public List<DeviceId> devices() {
    List<DeviceId> devices = new ArrayList<>();
    devices.add(new DeviceId(own.executorId(), HOST));
    if (own.gpu().isThere()) {
      devices.add(new DeviceId(own.executorId(), GPU));
    }
    return devices;
  }

  @Override
  public CliqueMember member(DeviceId device) throws IOException {
    PeerAddress address = address(device.executor());
    return new CliqueMember(
        device.executor(), address.incarnation(), device(address, device.ordinal()));
  }

  private static Device device(PeerAddress address, int ordinal) throws IOException {
    if (ordinal == HOST) {
      return Device.HOST;
    }
    if (ordinal != GPU) {
      throw new IOException("device 0 of an executor is its host, device 1 its GPU");
    }
    if (!address.gpu().isThere()) {
      throw new IOException("its executor has " + address.gpu());
    }
    return new Device(Device.Kind.CUDA, address.gpu().ordinal());
  }

  private PeerAddress address(String executorId) throws IOException {
    PeerAddress address = known.get(executorId);
    if (address == null) {
      address = peers.lookup(Set.of(executorId)).get(executorId);
      if (address == null) {
        throw new IOException("executor " + executorId + " has ended: it has no address");
      }
      known.put(executorId, address);
    }
    return address;
  }

  /**
   * Forgets an executor that has ended.
   *
   * @return its incarnation; null if this executor has not looked it up
   */
  String forget(String executorId) {
    PeerAddress address = known.remove(executorId);
    return address == null ? null : address.incarnation();
  }
}
