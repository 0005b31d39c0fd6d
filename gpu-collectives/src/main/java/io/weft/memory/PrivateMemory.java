package io.weft.memory;

import java.time.Duration;
import java.util.Objects;

/**
 * How much private memory an arena may use, and for whom. It has two parts, so that those who keep
 * what they have cannot take away what passes from hand to hand: half of it, in whole segments, is
 * lasting memory, the rest is working memory. Neither part lends to the other.
 *
 * @param bytes of both parts; 0 for an arena without
 * @param users who need working memory at once, about; at least 1
 * @param patience how long those who need working memory wait for what others give back
 */
public record PrivateMemory(long bytes, int users, Duration patience) {
  /** Of an arena without private memory. */
  public static final PrivateMemory NONE = new PrivateMemory(0, 1, Duration.ZERO);

  public PrivateMemory {
    Objects.requireNonNull(patience, "patience");
    if (bytes < 0 || users < 1 || patience.isNegative()) {
      throw new IllegalArgumentException(
          "private memory of %d bytes for %d users with a patience of %s"
              .formatted(bytes, users, patience));
    }
  }

  /** Most bytes that are held for long, in an arena of such segments. */
  public long lastingBytes(long segmentBytes) {
    return bytes / 2 / segmentBytes * segmentBytes;
  }

  /** Most bytes that are held for moments, in an arena of such segments. */
  public long workingBytes(long segmentBytes) {
    return bytes - lastingBytes(segmentBytes);
  }

  /** "512.0 MiB of private memory for moments and 512.0 MiB for long". */
  public String describe(long segmentBytes) {
    return "%s of private memory for moments and %s for long"
        .formatted(Bytes.text(workingBytes(segmentBytes)), Bytes.text(lastingBytes(segmentBytes)));
  }
}
