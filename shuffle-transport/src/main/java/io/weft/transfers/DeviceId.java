package io.weft.transfers;

import java.util.Comparator;
import java.util.Objects;

/**
 * A device as every executor of the application names it.
 *
 * @param executor id of the executor
 * @param ordinal of the device within the executor, from 0
 */
public record DeviceId(String executor, int ordinal) implements Comparable<DeviceId> {
  private static final Comparator<DeviceId> ORDER =
      Comparator.comparing(DeviceId::executor).thenComparingInt(DeviceId::ordinal);

  public DeviceId {
    Objects.requireNonNull(executor, "executor");
    if (ordinal < 0) {
      throw new IllegalArgumentException("device ordinal " + ordinal + " is negative");
    }
  }

  @Override
  public int compareTo(DeviceId other) {
    return ORDER.compare(this, other);
  }

  /** For example "executor 2/device 0". */
  @Override
  public String toString() {
    return "executor " + executor + "/device " + ordinal;
  }
}
