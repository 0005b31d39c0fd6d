package io.weft.examples.bench.transfer;

import java.util.Arrays;
import java.util.Locale;

/** The rows of the benchmark. */
enum Row {
  /** Many blocks in a stream, compared with plain sockets. */
  STREAM,
  /** Many small blocks, together and one by one. */
  SMALL,
  /** One small block, read repeatedly. */
  LATENCY,
  /** A stream over a network of a limited rate, with each compression. Needs root. */
  NETWORK,
  /** Shuffles of twice and of twenty times the size of Weft's memory. */
  SPILL,
  /** The same while Spark encrypts its local folders. */
  ENCRYPTED,
  /** Transfers whose peer dies. */
  ABORT;

  /** The name on the command line and in reports. */
  String id() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * Returns the row with a name.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  static Row of(String id) {
    return Arrays.stream(values())
        .filter(row -> row.id().equals(id))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "no row "
                        + id
                        + "; there are "
                        + String.join(", ", Arrays.stream(values()).map(Row::id).toList())));
  }
}
