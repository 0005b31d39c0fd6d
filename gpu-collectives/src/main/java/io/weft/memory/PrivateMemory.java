package io.weft.memory;

import java.time.Duration;
import java.util.Objects;

/**
 * How much private memory an arena may use. {@link SpillPolicy} divides it into a transient and a
 * retained part.
 *
 * @param bytes of both parts; 0 for an arena without private memory
 * @param users how many threads need transient memory at once, about; at least 1
 * @param timeout how long an allocation of transient memory waits
 */
public record PrivateMemory(long bytes, int users, Duration timeout) {
  /** The value for an arena without private memory. */
  public static final PrivateMemory NONE = new PrivateMemory(0, 1, Duration.ZERO);

  public PrivateMemory {
    Objects.requireNonNull(timeout, "timeout");
    if (bytes < 0 || users < 1 || timeout.isNegative()) {
      throw new IllegalArgumentException(
          "private memory of %d bytes for %d users with a timeout of %s"
              .formatted(bytes, users, timeout));
    }
  }

  /** The size of the retained part, in an arena with segments of this size. */
  public long retainedBytes(long segmentBytes) {
    return SpillPolicy.retainedBytes(bytes, segmentBytes);
  }

  /** The size of the transient part, in an arena with segments of this size. */
  public long transientBytes(long segmentBytes) {
    return bytes - retainedBytes(segmentBytes);
  }

  /** A text such as "512.0 MiB of transient and 512.0 MiB of retained private memory". */
  public String describe(long segmentBytes) {
    return "%s of transient and %s of retained private memory"
        .formatted(
            Bytes.text(transientBytes(segmentBytes)), Bytes.text(retainedBytes(segmentBytes)));
  }
}
