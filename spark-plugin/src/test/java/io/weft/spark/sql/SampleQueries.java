package io.weft.spark.sql;

import java.util.LinkedHashMap;
import java.util.Map;

/** Queries over {@link SampleTables}, by name. Their results have no ties in order. */
final class SampleQueries {
  private SampleQueries() {}

  /** SQL by name. */
  static Map<String, String> all() {
    Map<String, String> queries = new LinkedHashMap<>();
    repartitions(queries);
    aggregates(queries);
    joins(queries);
    orders(queries);
    corners(queries);
    return queries;
  }

  private static void repartitions(Map<String, String> queries) {
    queries.put("hash of a column with nulls", "select /*+ repartition(7, k) */ * from facts");
    queries.put("hash of a string", "select /*+ repartition(6, s) */ id, s, d from facts");
    queries.put(
        "hash of expressions",
        "select id, k, s, st from facts distribute by mod(k, 10), upper(s), st");
    queries.put("hash of made rows", "select /*+ repartition(7, k) */ * from made");
    queries.put("round robin", "select /*+ repartition(6) */ * from facts");
    queries.put("round robin of made rows", "select /*+ repartition(6) */ * from made");
    queries.put(
        "range", "select /*+ repartition_by_range(5, x, s) */ id, x, s, big, arr from facts");
    queries.put("range of made rows", "select /*+ repartition_by_range(5, dt) */ id, dt from made");
    queries.put("one partition", "select /*+ repartition(1) */ * from facts");
    queries.put("many partitions", "select /*+ repartition(80, id) */ id, s from facts");
    queries.put("rebalance", "select /*+ rebalance */ id, s from facts");
    queries.put("rebalance by column", "select /*+ rebalance(g) */ id, g from facts");
    queries.put("cached", "select /*+ repartition(4, k) */ * from kept");
    queries.put(
        "exchange over exchange",
        "select /*+ repartition(3, id) */ * from"
            + " (select /*+ repartition(4, k) */ id, k, x from facts) where x >= 0");
  }

  private static void aggregates(Map<String, String> queries) {
    queries.put("count by int", "select k, count(*), sum(id) from facts group by k");
    queries.put("group by string", "select s, max(d), min(big) from facts group by s");
    queries.put(
        "group by nested", "select st, b, collect_set(g) c from facts where g = 3 group by st, b");
    queries.put("distinct", "select distinct g, b, constant from facts");
    queries.put(
        "count distinct", "select g, count(distinct k), count(distinct s) from facts group by g");
    queries.put("global", "select count(*), sum(d), max(ts), min(ntz), max(span) from facts");
    queries.put("rollup", "select g, b, sum(sh) from facts group by rollup(g, b)");
    queries.put("lists", "select k, sort_array(collect_list(id)) l from facts group by k");
    queries.put("maps", "select g, max(m['z']), count(m) from facts group by g");
    queries.put(
        "explode", "select e, count(*) from facts lateral view explode(arr) as e group by e");
  }

  private static void joins(Map<String, String> queries) {
    for (String kind : new String[] {"inner", "left", "right", "full", "left semi", "left anti"}) {
      String columns =
          kind.contains("semi") || kind.contains("anti") ? "f.*" : "f.id, f.s, f.arr, d.*";
      queries.put(
          kind + " merge join",
          "select /*+ merge(d) */ "
              + columns
              + " from facts f "
              + kind
              + " join dims d on f.k = d.k");
    }
    queries.put(
        "hash join",
        "select /*+ shuffle_hash(d) */ f.id, d.name from facts f join dims d on f.k = d.k");
    queries.put(
        "broadcast join",
        "select /*+ broadcast(d) */ f.id, d.name from facts f join dims d on f.k = d.k");
    queries.put("join left to Spark", "select f.id, d.name from facts f join dims d on f.k = d.k");
    queries.put(
        "null-safe join",
        "select /*+ merge(b) */ a.id, b.id from facts a join facts b"
            + " on a.s <=> b.s and a.id = b.id");
    queries.put(
        "skewed join", "select /*+ merge(d) */ s.v, d.name from skewed s join dims d on s.k = d.k");
    queries.put(
        "join with nothing",
        "select /*+ merge(n) */ f.id, n.s from facts f left join nothing n" + " on f.id = n.id");
    queries.put(
        "self join",
        "select /*+ merge(b) */ a.g, a.c, b.c from"
            + " (select g, count(*) c from facts group by g) a join"
            + " (select g, count(*) c from facts group by g) b on a.g = b.g");
    queries.put(
        "join of cached and made",
        "select /*+ merge(m) */ c.id, m.s from kept c join made m"
            + " on c.id = m.id and c.k = m.k");
  }

  private static void orders(Map<String, String> queries) {
    queries.put("order by", "select id, s, x from facts order by s desc nulls last, id");
    queries.put("order by decimal", "select big, id from facts order by big");
    queries.put("limit", "select id, d from facts order by d desc limit 37");
    queries.put("offset", "select id from facts order by id limit 20 offset 100");
    queries.put(
        "window",
        "select id, row_number() over (partition by k order by id) n,"
            + " sum(sh) over (partition by k order by id rows 3 preceding) t from facts");
    queries.put(
        "window over all", "select id, lag(id) over (order by id) l from facts where g = 1");
    queries.put(
        "rank in groups",
        "select * from (select k, id, rank() over (partition by k order by d desc) r"
            + " from facts) where r <= 2");
  }

  private static void corners(Map<String, String> queries) {
    queries.put("no columns", "select count(*) from (select /*+ repartition(5) */ * from facts)");
    queries.put("nothing repartitioned", "select /*+ repartition(4, k) */ * from nothing");
    queries.put("nothing sorted", "select id from nothing order by id");
    queries.put("nothing counted", "select count(*), max(s) from nothing");
    queries.put(
        "union",
        "select /*+ repartition(3, k) */ k, id from facts union all select k, id from made");
    queries.put("distinct union", "select k from facts union select k from dims");
    queries.put("intersect", "select k from facts intersect select k from dims");
    queries.put("except", "select k from dims except select k from facts where k < 150");
    queries.put(
        "scalar subquery", "select id from facts where id > (select avg(id) from facts) and g = 2");
    queries.put(
        "in subquery", "select id, k from facts where k in (select k from dims where v > 300)");
    queries.put(
        "exists",
        "select id from facts f where exists (select 1 from dims o where o.k = f.k and o.v < 60)");
    queries.put(
        "correlated", "select o.k, (select count(*) from facts f where f.k = o.k) c from dims o");
    queries.put(
        "subquery in the hash",
        "select /*+ repartition(4, k) */ id, k from facts"
            + " where id < (select max(v) from dims)");
    queries.put(
        "common table",
        "with t as (select k, sum(id) t from facts group by k)"
            + " select a.k, a.t, b.t from t a join t b on a.k = b.k + 1");
    queries.put(
        "pivot",
        "select * from (select g, b, id from facts) pivot (sum(id) for b in (true, false))");
    queries.put(
        "values",
        "select /*+ repartition(3, c) */ * from values (1, 'a'), (2, null), (null, 'c') t(c, d)");
  }
}
