package io.weft.examples.bench.shuffle;

import io.weft.examples.tables.TableSet;
import io.weft.examples.tpcds.TpcdsQuery;
import io.weft.examples.tpcds.TpcdsTables;
import io.weft.examples.tpch.TpchQuery;
import io.weft.examples.tpch.TpchTables;
import java.util.List;
import java.util.Locale;

/**
 * A whole query as a subject of the benchmark.
 *
 * @param tables that it reads
 * @param name of the query within its set, such as Q18
 * @param text the SQL
 */
record Query(TableSet tables, String name, String text) {
  private static final List<Integer> TPCH =
      List.of(3, 4, 5, 7, 8, 9, 10, 12, 13, 16, 17, 18, 20, 21);

  /** The name in reports. */
  String id() {
    return tables.id() + "-" + name.toLowerCase(Locale.ROOT);
  }

  /** The description in tables. */
  String title() {
    return tables.title() + " " + name;
  }

  /** Queries of TPC-H that shuffle much. */
  static List<String> usualOfTpch() {
    return TPCH.stream().map(number -> Integer.toString(number)).toList();
  }

  /** All queries of TPC-DS. */
  static List<String> usualOfTpcds() {
    return TpcdsQuery.all().stream().map(TpcdsQuery::name).toList();
  }

  /**
   * A query of TPC-H.
   *
   * @throws IllegalArgumentException if there is none with this number
   */
  static Query ofTpch(String number) {
    TpchQuery query = TpchQuery.of(Integer.parseInt(number));
    return new Query(TpchTables.ALL, query.toString(), query.text());
  }

  /**
   * A query of TPC-DS.
   *
   * @throws IllegalArgumentException if there is none with this name
   */
  static Query ofTpcds(String name) {
    return new Query(TpcdsTables.ALL, "Q" + name, new TpcdsQuery(name).text());
  }
}
