package io.weft.examples.bench.transfer;

import java.util.Arrays;
import java.util.Locale;

/** The rows of the benchmark. */
public enum Row {
  /** Many blocks in a stream, against plain sockets. */
  STREAM,
  /** Many small blocks, together and one by one. */
  SMALL,
  /** One small block, again and again. */
  LATENCY,
  /** A shuffle of twice the memory that Weft has. */
  SPILL,
  /** The same while Spark encrypts its local folders. */
  ENCRYPTED,
  /** Transfers whose peer dies. */
  ABORT;

  /** How it is called on the command line and in reports. */
  public String id() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * The row of a name.
   *
   * @throws IllegalArgumentException naming those there are
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
