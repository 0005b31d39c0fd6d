package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.jobs.ShuffleJob.Exchange;
import io.weft.examples.jobs.ShuffleJob.Source;
import io.weft.examples.jobs.WriteInput;
import io.weft.examples.jobs.WriteInput.Kind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Kinds of shuffles. Row counts are of a full run; one factor scales all workloads. */
enum Workload {
  NUMERIC("numeric", "numeric columns from Parquet", 10_000_000, Kind.NUMERIC),
  STRINGS("strings", "strings from Parquet", 5_000_000, Kind.STRINGS),
  TENSORS("tensors", "tensors of 1,024 floats", 150_000, Kind.TENSORS),
  COMPUTED("computed", "computed rows", 10_000_000),
  SMALL_BLOCKS("small-blocks", "200 × 200 blocks of 50 columns", 1_600_000),

  DECIMALS("decimals", "computed decimals of 22 digits", 10_000_000),
  ROUND_ROBIN("round-robin", "three numbers, round robin", 10_000_000),
  RANGE("range", "number, double, string, by range", 5_000_000),
  RDD("rdd", "RDD of rows, Java serializer", 2_000_000),
  MIXED("mixed", "all types with nulls", 4_000_000, Kind.MIXED),
  NESTED("nested", "structs, arrays and maps", 2_000_000, Kind.NESTED),
  WIDE("wide", "300 columns, 10 of them read", 200_000, Kind.WIDE),
  SHORT_STRINGS("short-strings", "strings of 1 to 8 bytes", 5_000_000, Kind.SHORT_STRINGS),
  HOT_KEY("hot-key", "90 % of rows have one key", 5_000_000, Kind.HOT_KEY),
  TINY_BLOCKS("tiny-blocks", "10 rows in a block", 400_000),
  SORTED_RDD("sorted-rdd", "RDD of 100 bytes in a record, sorted", 2_000_000),

  GROUP_BY("group-by", "GROUP BY of many keys", 10_000_000),
  JOIN("join", "sort-merge join of two tables", 5_000_000),
  WINDOW("window", "window functions", 5_000_000),
  DISTINCT("distinct", "DISTINCT", 10_000_000),
  COLLECT_LIST("collect-list", "collect_list", 5_000_000),
  PAGE_RANK("page-rank", "PageRank over RDDs", 2_000_000);

  /** The name of a group: shuffles of other shapes than the first five workloads. */
  static final String SHAPES = "shapes";

  /** The name of a group: whole jobs around shuffles. */
  static final String OPERATORS = "operators";

  private static final String KEY = "k";
  private static final int TASKS = 16;
  private static final int SMALL_BLOCK_TASKS = 200;
  private static final int SMALL_BLOCK_COLUMNS = 50;
  private static final int TINY_BLOCK_ROWS = 10;
  private static final int READ_COLUMNS = 10;
  private static final int ITERATIONS = 5;
  private static final Set<Workload> WHOLE_JOBS = EnumSet.range(GROUP_BY, PAGE_RANK);

  private static final List<String> COMPUTED_COLUMNS =
      List.of(
          "id * 2654435761 as k",
          "id as a",
          "id % 1000 as b",
          "id * id as c",
          "cast(id as double) as w",
          "id / 3.0D as x",
          "sqrt(id) as y",
          "date_add(date '2000-01-01', cast(id % 10000 as int)) as day");
  private static final List<String> DECIMAL_COLUMNS =
      List.of("id * 2654435761 as k", "id * 0.5 as a", "(id + 7) * 0.5 as b", "-id * 0.5 as c");
  private static final List<String> NUMBER_COLUMNS =
      List.of("id * 2654435761 as k", "id as a", "cast(id as double) as w");
  private static final List<String> RANGE_COLUMNS =
      List.of("xxhash64(id) as k", "sqrt(id) as w", "concat('name ', id) as s");

  /** A key of 10 characters and 90 bytes, which repeat a part as names and numbers do. */
  private static final List<String> RECORD_COLUMNS =
      List.of(
          "lpad(hex(id * 2654435761 % 1099511627776), 10, '0') as k",
          "unhex(concat(repeat(md5(string(id)), 5), '00000000000000000000')) as v");

  private final String id;
  private final String title;
  private final long fullRows;
  private final Kind input;

  Workload(String id, String title, long fullRows) {
    this(id, title, fullRows, null);
  }

  Workload(String id, String title, long fullRows, Kind input) {
    this.id = id;
    this.title = title;
    this.fullRows = fullRows;
    this.input = input;
  }

  /** The name on the command line and in reports. */
  String id() {
    return id;
  }

  /** The description in tables. */
  String title() {
    return title;
  }

  /** Whether its time is that of a whole job rather than of a shuffle alone. */
  boolean wholeJob() {
    return WHOLE_JOBS.contains(this);
  }

  /** The number of rows of a run; a factor of 1 is a full run. */
  long rows(double factor) {
    return Math.max(1, Math.round(fullRows * factor));
  }

  /** The task that writes its input; empty if it computes its rows. */
  Optional<WriteInput> input(double factor, String folder) {
    return Optional.ofNullable(input).map(kind -> new WriteInput(kind, rows(factor), folder));
  }

  /** The job to measure. If it has an input, the input is in the folder. */
  ShuffleJob job(double factor, String folder) {
    return new ShuffleJob(source(factor, folder), exchange(factor));
  }

  private Source source(double factor, String folder) {
    long rows = rows(factor);
    return switch (this) {
      case COMPUTED -> new Source.Computed(rows, TASKS, COMPUTED_COLUMNS);
      case DECIMALS -> new Source.Computed(rows, TASKS, DECIMAL_COLUMNS);
      case ROUND_ROBIN, RDD -> new Source.Computed(rows, TASKS, NUMBER_COLUMNS);
      case RANGE -> new Source.Computed(rows, TASKS, RANGE_COLUMNS);
      case SORTED_RDD -> new Source.Computed(rows, TASKS, RECORD_COLUMNS);
      case PAGE_RANK -> new Source.Computed(rows, TASKS, edgeColumns(rows));
      case SMALL_BLOCKS -> new Source.Computed(rows, SMALL_BLOCK_TASKS, smallBlockColumns());
      case TINY_BLOCKS -> new Source.Computed(rows, tinyBlockTasks(factor), NUMBER_COLUMNS);
      case GROUP_BY, JOIN, WINDOW, DISTINCT, COLLECT_LIST -> new Source.Query(query(rows));
      default -> new Source.Parquet(folder);
    };
  }

  private Exchange exchange(double factor) {
    return switch (this) {
      case ROUND_ROBIN -> new Exchange.RoundRobin(TASKS);
      case RANGE -> new Exchange.Range(TASKS, KEY);
      case RDD -> new Exchange.Rdd(TASKS);
      case SORTED_RDD -> new Exchange.SortedRdd(TASKS);
      case PAGE_RANK -> new Exchange.PageRank(TASKS, ITERATIONS);
      case WIDE -> new Exchange.SomeRead(new Exchange.Hash(TASKS, KEY), readColumns());
      case SMALL_BLOCKS -> new Exchange.Hash(SMALL_BLOCK_TASKS, KEY);
      case TINY_BLOCKS -> new Exchange.Hash(tinyBlockTasks(factor), KEY);
      case GROUP_BY, JOIN, WINDOW, DISTINCT, COLLECT_LIST -> new Exchange.None();
      default -> new Exchange.Hash(TASKS, KEY);
    };
  }

  /** As many map tasks as reduce tasks, so that every block gets the same number of rows. */
  private int tinyBlockTasks(double factor) {
    return (int) Math.max(1, Math.round(Math.sqrt((double) rows(factor) / TINY_BLOCK_ROWS)));
  }

  /** The SQL of a whole job. Its result does not depend on the order of rows. */
  private String query(long rows) {
    long keys = Math.max(1, this == GROUP_BY || this == DISTINCT ? rows / 2 : rows / 10);
    String table =
        "(select pmod(id, %d) * 2654435761 as k, id as v from range(0, %d, 1, %d))"
            .formatted(keys, rows, TASKS);
    String unique =
        "(select id * 2654435761 as k, id as v from range(0, %d, 1, %d))".formatted(rows, TASKS);
    return switch (this) {
      case GROUP_BY ->
          "select k, count(*) as n, sum(v) as total, max(v) as last from " + table + " group by k";
      case JOIN ->
          "select /*+ MERGE(b) */ k, a.v, b.v + 1 as w from "
              .concat(unique + " a join " + unique + " b using (k)");
      case WINDOW ->
          "select *, row_number() over (partition by k order by v) as place,"
              .concat(" sum(v) over (partition by k) as total from " + table);
      case DISTINCT -> "select distinct k, v % 2 as w from " + table;
      case COLLECT_LIST ->
          "select k, sort_array(collect_list(v)) as list from " + table + " group by k";
      default -> throw new IllegalStateException(id + " is not a query");
    };
  }

  /**
   * Returns the workloads with a name, which may be that of a group.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  static Stream<Workload> named(String name) {
    if (name.equals(SHAPES)) {
      return EnumSet.range(DECIMALS, SORTED_RDD).stream();
    }
    if (name.equals(OPERATORS)) {
      return WHOLE_JOBS.stream();
    }
    List<Workload> found =
        Arrays.stream(values()).filter(workload -> workload.id.equals(name)).toList();
    if (found.isEmpty()) {
      String names = String.join(", ", Arrays.stream(values()).map(Workload::id).toList());
      throw new IllegalArgumentException(
          "no workload %s; there are %s, %s, and the groups %s and %s"
              .formatted(
                  name,
                  names,
                  String.join(" and ", ShuffleBench.Options.QUERY_SETS),
                  SHAPES,
                  OPERATORS));
    }
    return found.stream();
  }

  /** Ten edges from each vertex. */
  private static List<String> edgeColumns(long rows) {
    long vertices = Math.max(1, rows / 10);
    return List.of(
        "pmod(id, %d) as k".formatted(vertices), "pmod(xxhash64(id), %d) as v".formatted(vertices));
  }

  private static List<String> smallBlockColumns() {
    List<String> columns = new ArrayList<>(List.of("id as k"));
    IntStream.range(1, SMALL_BLOCK_COLUMNS)
        .mapToObj(i -> "id + " + i + " as c" + i)
        .forEach(columns::add);
    return columns;
  }

  private static List<String> readColumns() {
    return IntStream.range(0, READ_COLUMNS).mapToObj(i -> "c" + (i * 29 + 1)).toList();
  }
}
