package io.weft.collectives.clique;

import io.weft.device.Device;
import java.util.Objects;

/**
 * A device of one incarnation of a process.
 *
 * @param process id of the executor or process
 * @param incarnation differs between restarts with the same process id; never empty
 */
public record CliqueMember(String process, String incarnation, Device device)
    implements Comparable<CliqueMember> {
  public CliqueMember {
    Objects.requireNonNull(process, "process");
    Objects.requireNonNull(device, "device");
    if (incarnation.isEmpty()) {
      throw new IllegalArgumentException("process " + process + " has no incarnation");
    }
  }

  /** Whether this is a device of this incarnation of the process. */
  boolean isOf(String otherProcess, String otherIncarnation) {
    return process.equals(otherProcess) && incarnation.equals(otherIncarnation);
  }

  @Override
  public int compareTo(CliqueMember other) {
    int byProcess = process.compareTo(other.process);
    if (byProcess != 0) {
      return byProcess;
    }
    int byIncarnation = incarnation.compareTo(other.incarnation);
    return byIncarnation != 0 ? byIncarnation : device.compareTo(other.device);
  }

  @Override
  public String toString() {
    return process + "/" + device + "@" + incarnation;
  }
}
