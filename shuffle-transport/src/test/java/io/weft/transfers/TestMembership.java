package io.weft.transfers;

import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Device;
import io.weft.transfers.DeviceTransfers.TransferMembership;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * One executor's view of the membership.
 *
 * @param incarnations of all executors by their ids; may change
 * @param kind of all devices; executor n has GPU n
 */
record TestMembership(
    String executor, List<DeviceId> devices, Map<String, String> incarnations, Device.Kind kind)
    implements TransferMembership {
  /** A directory of hosts. */
  TestMembership(String executor, List<DeviceId> devices, Map<String, String> incarnations) {
    this(executor, devices, incarnations, Device.Kind.HOST);
  }

  @Override
  public CliqueMember member(DeviceId device) throws IOException {
    String incarnation = incarnations.get(device.executor());
    if (incarnation == null) {
      throw new IOException("it is unknown");
    }
    int ordinal = kind == Device.Kind.CUDA ? Integer.parseInt(device.executor()) : device.ordinal();
    return new CliqueMember(device.executor(), incarnation, new Device(kind, ordinal));
  }
}
