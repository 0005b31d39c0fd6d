package io.weft.examples.tpcds;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A query of TPC-DS. The texts are those of version 1.4 from Spark's own tests; the build takes
 * them out of that jar.
 *
 * @param name its number, with a letter for the four queries that are two: {@code 14a}
 */
public record TpcdsQuery(String name) {
  private static final int COUNT = 99;
  private static final Set<Integer> TWO = Set.of(14, 23, 24, 39);

  /**
   * Names a query.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  public TpcdsQuery {
    if (!names().contains(name)) {
      throw new IllegalArgumentException(
          "no query " + name + " of TPC-DS; there are " + String.join(", ", names()));
    }
  }

  /** Returns all queries, in the order of their numbers. */
  public static List<TpcdsQuery> all() {
    return names().stream().map(TpcdsQuery::new).toList();
  }

  private static List<String> names() {
    return IntStream.rangeClosed(1, COUNT)
        .boxed()
        .flatMap(n -> TWO.contains(n) ? Stream.of(n + "a", n + "b") : Stream.of("" + n))
        .toList();
  }

  /** Returns the text for {@code SparkSession.sql}. */
  public String text() {
    String resource = "/tpcds/q" + name + ".sql";
    try (InputStream in = TpcdsQuery.class.getResourceAsStream(resource)) {
      if (in == null) {
        throw new IllegalStateException(resource + " is not on the class path");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
