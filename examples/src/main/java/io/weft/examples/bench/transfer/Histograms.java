package io.weft.examples.bench.transfer;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.DataFormatException;
import org.HdrHistogram.Histogram;

/** Creates histograms of nanoseconds and encodes them as one word. Stateless. */
final class Histograms {
  private static final long LONGEST_NANOS = 60_000_000_000L;
  private static final int DIGITS = 3;

  private Histograms() {}

  static Histogram create() {
    return new Histogram(LONGEST_NANOS, DIGITS);
  }

  /** Records a duration; a longer one than a minute counts as a minute. */
  static void record(Histogram histogram, long nanos) {
    histogram.recordValue(Math.min(LONGEST_NANOS, nanos));
  }

  static String encode(Histogram histogram) {
    ByteBuffer bytes = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
    int length = histogram.encodeIntoCompressedByteBuffer(bytes);
    return Base64.getEncoder().encodeToString(Arrays.copyOf(bytes.array(), length));
  }

  static Histogram decode(String word) throws IOException {
    try {
      ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(word));
      return Histogram.decodeFromCompressedByteBuffer(bytes, 0);
    } catch (DataFormatException e) {
      throw new IOException("cannot decode a histogram: " + e, e);
    }
  }
}
