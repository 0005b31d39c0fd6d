package io.weft.compat;

import static org.apache.spark.sql.functions.col;

import java.io.Serializable;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FilterFunction;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.api.java.function.MapGroupsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/** Programs that need no library beside Spark's core and SQL. */
public final class JobPrograms {
  private static final int JOBS = 10;
  private static final int SESSIONS = 10;
  private static final int TAKEN = 500;
  private static final int RECORDS = 20_000;
  private static final String ROWS =
      "SELECT id, id % 13 AS k, REPEAT(STRING(id), 5) AS s FROM RANGE(0, 50000, 1, 8)";

  private JobPrograms() {}

  static List<Program> all() {
    Program sort = Program.of("sortByKey of 100 bytes", Map.of(), JobPrograms::sort);
    return List.of(
        sort.withStreams(),
        sort.withKryoStreams(),
        Program.of("Dataset with Kryo encoders", Map.of(), JobPrograms::kryoEncoders),
        Program.of(
            "Ten jobs at once under FAIR",
            Map.of("spark.scheduler.mode", "FAIR"),
            JobPrograms::jobsAtOnce),
        Program.of("rdd.pipe and take", Map.of(), JobPrograms::pipe),
        Program.of("SQL TRANSFORM under a limit", Map.of(), JobPrograms::transform),
        Program.of("Ten sessions in one JVM", Map.of(), (session, folder) -> group(session, 0))
            .repeated(SESSIONS));
  }

  /** An element that Spark knows nothing of. */
  public static final class Item implements Serializable {
    private static final long serialVersionUID = 1L;

    private final long id;
    private final List<String> names;

    Item(long id, List<String> names) {
      this.id = id;
      this.names = names;
    }
  }

  private static List<String> kryoEncoders(SparkSession session, Path folder) {
    Dataset<Item> items =
        session
            .createDataset(LongStream.range(0, 5000).boxed().toList(), Encoders.LONG())
            .map((MapFunction<Long, Item>) JobPrograms::item, Encoders.kryo(Item.class));
    return items
        .repartition(7)
        .filter((FilterFunction<Item>) item -> item.id % 3 != 0)
        .groupByKey((MapFunction<Item, Long>) item -> item.id % 10, Encoders.LONG())
        .mapGroups(
            (MapGroupsFunction<Long, Item, String>)
                (key, group) -> {
                  long sum = 0;
                  long names = 0;
                  while (group.hasNext()) {
                    Item item = group.next();
                    sum += item.id;
                    names += item.names.hashCode();
                  }
                  return key + " " + sum + " " + names;
                },
            Encoders.STRING())
        .collectAsList()
        .stream()
        .sorted()
        .toList();
  }

  private static Item item(long id) {
    return new Item(id, new ArrayList<>(List.of("a" + id, "b" + id % 7)));
  }

  private static List<String> jobsAtOnce(SparkSession session, Path folder) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(JOBS);
    try {
      List<Callable<List<String>>> jobs = new ArrayList<>();
      for (int i = 0; i < JOBS; i++) {
        int job = i;
        jobs.add(() -> group(session, job));
      }
      List<String> lines = new ArrayList<>();
      for (Future<List<String>> job : threads.invokeAll(jobs)) {
        lines.addAll(job.get());
      }
      return lines;
    } finally {
      threads.shutdownNow();
    }
  }

  private static List<String> group(SparkSession session, int number) {
    Dataset<Row> rows = session.sql(ROWS).selectExpr("id + " + number + " AS id", "k", "s");
    return Program.sorted(
        rows.repartition(9, col("id"))
            .join(rows.selectExpr("id", "s AS other"), "id")
            .groupBy("k")
            .agg(Map.of("id", "sum", "s", "max", "other", "min")));
  }

  /**
   * TeraSort: records of a key of 10 bytes and a value of 90, in the order of their keys, sorted
   * once by ranges and once within partitions. The order of the result is that of the partitions.
   */
  private static List<String> sort(SparkSession session, Path folder) {
    JavaPairRDD<String, byte[]> records =
        new JavaSparkContext(session.sparkContext())
            .parallelize(LongStream.range(0, RECORDS).boxed().toList(), 4)
            .mapToPair(id -> new Tuple2<>(key(id), value(id)));
    List<String> lines =
        new ArrayList<>(records.sortByKey(true, 6).map(JobPrograms::line).collect());
    lines.addAll(
        records
            .repartitionAndSortWithinPartitions(new HashPartitioner(5))
            .map(JobPrograms::line)
            .collect());
    return lines;
  }

  /** Unique, and in another order than the numbers. */
  private static String key(long id) {
    return "%010d".formatted(id * 7919 % 1_000_003);
  }

  private static byte[] value(long id) {
    byte[] value = new byte[90];
    new SplittableRandom(id).nextBytes(value);
    return value;
  }

  private static String line(Tuple2<String, byte[]> pair) {
    return pair._1() + HexFormat.of().formatHex(pair._2());
  }

  private static List<String> pipe(SparkSession session, Path folder) {
    return session.sql(ROWS).orderBy("s").toJSON().javaRDD().pipe("cat").take(TAKEN);
  }

  /** Which rows a limit takes is undefined after a shuffle, so they are counted and verified. */
  private static List<String> transform(SparkSession session, Path folder) {
    return Program.sorted(
        session.sql(
            "SELECT COUNT(*) AS n, COUNT_IF(s = REPEAT(id, 5)) AS whole FROM"
                + " (SELECT TRANSFORM(id, s) USING 'cat' AS (id STRING, s STRING) FROM ("
                + ROWS
                + " DISTRIBUTE BY id) LIMIT "
                + TAKEN
                + ")"));
  }
}
