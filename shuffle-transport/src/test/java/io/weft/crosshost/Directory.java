package io.weft.crosshost;

import io.weft.collectives.clique.CliqueMember;
import io.weft.device.Device;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * One executor's view of who is there.
 *
 * @param incarnations of all executors by their ids; may change
 */
record Directory(String executor, List<DeviceId> devices, Map<String, String> incarnations)
    implements Membership {
  @Override
  public CliqueMember member(DeviceId device) throws IOException {
    String incarnation = incarnations.get(device.executor());
    if (incarnation == null) {
      throw new IOException("nobody knows it");
    }
    return new CliqueMember(
        device.executor(), incarnation, new Device(Device.Kind.HOST, device.ordinal()));
  }
}
