package io.weft.spark.transfers;

import io.weft.collectives.clique.CliqueMember;
import io.weft.crosshost.DeviceId;
import io.weft.crosshost.Membership;
import io.weft.device.Device;
import io.weft.peer.PeerAddress;
import io.weft.peer.PeerDirectory;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The application's executors, each with its host as the only device, by what they announced to the
 * driver. An id has one life only. Thread-safe.
 */
final class ExecutorDirectory implements Membership {
  private final PeerAddress own;
  private final PeerDirectory peers;
  private final Map<String, String> incarnations = new ConcurrentHashMap<>();

  ExecutorDirectory(PeerAddress own, PeerDirectory peers) {
    this.own = own;
    this.peers = peers;
    incarnations.put(own.executorId(), own.incarnation());
  }

  @Override
  public String executor() {
    return own.executorId();
  }

  @Override
  public List<DeviceId> devices() {
    return List.of(new DeviceId(own.executorId(), 0));
  }

  @Override
  public CliqueMember member(DeviceId device) throws IOException {
    if (device.ordinal() != 0) {
      throw new IOException("executors have one device, number 0");
    }
    return new CliqueMember(device.executor(), incarnation(device.executor()), Device.HOST);
  }

  private String incarnation(String executorId) throws IOException {
    String known = incarnations.get(executorId);
    if (known == null) {
      known = peers.lookup(executorId).incarnation();
      incarnations.put(executorId, known);
    }
    return known;
  }

  /** The life of an executor that this one had to do with; null of any other. */
  String known(String executorId) {
    return incarnations.get(executorId);
  }
}
