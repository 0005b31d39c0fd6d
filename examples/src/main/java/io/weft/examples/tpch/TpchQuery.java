package io.weft.examples.tpch;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * A query of TPC-H. The text comes from the library io.trino.tpch; Spark accepts it unchanged.
 *
 * <p>Queries 6 and 15 are missing because their text is not Spark SQL; 1, 14 and 19 because they
 * shuffle little.
 */
public enum TpchQuery {
  Q2(2, true),
  Q3(3, false),
  Q4(4, true),
  Q5(5, false),
  Q7(7, true),
  Q8(8, true),
  Q9(9, true),
  Q10(10, false),
  Q11(11, false),
  Q12(12, true),
  Q13(13, true),
  Q16(16, true),
  Q17(17, true),
  Q18(18, false),
  Q20(20, true),
  Q21(21, true),
  Q22(22, true);

  private final int number;
  private final boolean totalOrder;

  TpchQuery(int number, boolean totalOrder) {
    this.number = number;
    this.totalOrder = totalOrder;
  }

  /** The number in the specification. */
  public int number() {
    return number;
  }

  /** Whether ORDER BY leaves no ties; then the order of results can be compared too. */
  public boolean totalOrder() {
    return totalOrder;
  }

  /**
   * Returns the query with a number.
   *
   * @throws IllegalArgumentException if there is none; the message lists the numbers
   */
  public static TpchQuery of(int number) {
    return Arrays.stream(values())
        .filter(query -> query.number == number)
        .findFirst()
        .orElseThrow(
            () -> new IllegalArgumentException("no query " + number + "; there are " + numbers()));
  }

  private static List<Integer> numbers() {
    return Arrays.stream(values()).map(TpchQuery::number).toList();
  }

  /** Returns the text for {@code SparkSession.sql}. */
  public String text() {
    String resource = "/io/trino/tpch/queries/q" + number + ".sql";
    try (InputStream in = TpchQuery.class.getResourceAsStream(resource)) {
      if (in == null) {
        throw new IllegalStateException(resource + " is not on the class path");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
