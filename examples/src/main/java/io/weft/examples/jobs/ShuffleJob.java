package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import scala.Tuple2;

/**
 * Reads rows, shuffles them or not, and discards them. The shuffle costs the difference of the two.
 *
 * @param source of the rows
 * @param exchange the shuffle
 */
public record ShuffleJob(Source source, Exchange exchange) implements SideTask<JobCost> {
  @Override
  public JobCost run(SparkSession session) throws Exception {
    Dataset<Row> input = source.rows(session);
    try (Cached ignored = new Cached(session)) {
      return JobCost.Meter.measure(
              session.sparkContext(),
              () -> {
                // Some exchanges already run a part of the job here.
                Dataset<Row> rows = exchange.shuffle(input);
                rows.write().format("noop").mode("overwrite").save();
                return rows;
              })
          .cost();
    }
  }

  private Dataset<Row> rows(SparkSession session) {
    return exchange.shuffle(source.rows(session));
  }

  /** On close, drops the RDDs that were cached since its creation. */
  private static final class Cached implements AutoCloseable {
    private final JavaSparkContext context;
    private final Set<Integer> before;

    Cached(SparkSession session) {
      context = JavaSparkContext.fromSparkContext(session.sparkContext());
      before = Set.copyOf(context.getPersistentRDDs().keySet());
    }

    @Override
    public void close() {
      context
          .getPersistentRDDs()
          .forEach(
              (id, rdd) -> {
                if (!before.contains(id)) {
                  rdd.unpersist(true);
                }
              });
    }
  }

  /** Returns the same job without the shuffle. */
  public ShuffleJob withoutShuffle() {
    return new ShuffleJob(source, new Exchange.Omitted(exchange));
  }

  /** The source of the rows of a job. */
  public sealed interface Source extends Serializable {
    /** Returns the rows, not yet read. */
    Dataset<Row> rows(SparkSession session);

    /**
     * A folder of Parquet.
     *
     * @param folder of the files
     */
    record Parquet(String folder) implements Source {
      @Override
      public Dataset<Row> rows(SparkSession session) {
        return session.read().parquet(folder);
      }
    }

    /**
     * Rows computed from a counter column named id.
     *
     * @param count of rows
     * @param partitions the number of map tasks
     * @param expressions of the columns
     */
    record Computed(long count, int partitions, List<String> expressions) implements Source {
      @Override
      public Dataset<Row> rows(SparkSession session) {
        return session
            .range(0, count, 1, partitions)
            .selectExpr(expressions.toArray(String[]::new));
      }
    }

    /**
     * The rows of a query.
     *
     * @param text the SQL
     */
    record Query(String text) implements Source {
      @Override
      public Dataset<Row> rows(SparkSession session) {
        return session.sql(text);
      }
    }
  }

  /** How the rows of a job are shuffled. */
  public sealed interface Exchange extends Serializable {
    /** Returns the rows after the shuffle. */
    Dataset<Row> shuffle(Dataset<Row> rows);

    /** Returns the rows as {@link #shuffle} does, but without the shuffle. */
    default Dataset<Row> pass(Dataset<Row> rows) {
      return rows;
    }

    /** The rows as they are. */
    record None() implements Exchange {
      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        return rows;
      }
    }

    /** All steps of an exchange except its shuffle. */
    record Omitted(Exchange of) implements Exchange {
      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        return of.pass(rows);
      }
    }

    /**
     * By the hash of a column.
     *
     * @param partitions to shuffle into
     * @param key the column
     */
    record Hash(int partitions, String key) implements Exchange {
      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        return rows.repartition(partitions, functions.col(key));
      }
    }

    /**
     * In turn.
     *
     * @param partitions to shuffle into
     */
    record RoundRobin(int partitions) implements Exchange {
      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        return rows.repartition(partitions);
      }
    }

    /**
     * By ranges of a column.
     *
     * @param partitions to shuffle into
     * @param key the column
     */
    record Range(int partitions, String key) implements Exchange {
      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        return rows.repartitionByRange(partitions, functions.col(key));
      }
    }

    /**
     * As an RDD of rows, in turn, with the serializer of the settings.
     *
     * @param partitions to shuffle into
     */
    record Rdd(int partitions) implements Exchange {
      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        return rows.sparkSession()
            .createDataFrame(rows.javaRDD().repartition(partitions), rows.schema());
      }

      @Override
      public Dataset<Row> pass(Dataset<Row> rows) {
        return rows.sparkSession().createDataFrame(rows.javaRDD(), rows.schema());
      }
    }

    /**
     * As an RDD in the order of its keys, as TeraSort does: a text and bytes.
     *
     * @param partitions to shuffle into
     */
    record SortedRdd(int partitions) implements Exchange {
      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        return rows(rows, pairs(rows).sortByKey(true, partitions));
      }

      @Override
      public Dataset<Row> pass(Dataset<Row> rows) {
        return rows(rows, pairs(rows));
      }

      private static JavaPairRDD<String, byte[]> pairs(Dataset<Row> rows) {
        return rows.javaRDD().mapToPair(row -> new Tuple2<>(row.getString(0), row.getAs(1)));
      }

      private static Dataset<Row> rows(Dataset<Row> like, JavaPairRDD<String, byte[]> pairs) {
        return like.sparkSession()
            .createDataFrame(
                pairs.map(pair -> RowFactory.create(pair._1(), pair._2())), like.schema());
      }
    }

    /**
     * PageRank over RDDs: rows are edges between numbers, and the result has a vertex and its rank
     * in each row. Ranks are whole numbers, whose sums do not depend on the order of blocks.
     *
     * @param partitions of each shuffle
     * @param iterations each with a join and a sum by key
     */
    record PageRank(int partitions, int iterations) implements Exchange {
      private static final long ONE = 1_000_000_000;

      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        JavaPairRDD<Long, Iterable<Long>> links =
            rows.javaRDD()
                .mapToPair(row -> new Tuple2<>(row.getLong(0), row.getLong(1)))
                .groupByKey(partitions)
                .cache();
        JavaPairRDD<Long, Long> ranks = links.mapValues(targets -> ONE);
        for (int i = 0; i < iterations; i++) {
          ranks =
              links
                  .join(ranks, partitions)
                  .values()
                  .flatMapToPair(PageRank::parts)
                  .reduceByKey(Long::sum, partitions)
                  .mapValues(sum -> ONE * 15 / 100 + sum * 85 / 100);
        }
        return rows.sparkSession()
            .createDataFrame(
                ranks.map(rank -> RowFactory.create(rank._1(), rank._2())), rows.schema());
      }

      private static Iterator<Tuple2<Long, Long>> parts(Tuple2<Iterable<Long>, Long> vertex) {
        List<Tuple2<Long, Long>> parts = new ArrayList<>();
        vertex._1().forEach(target -> parts.add(new Tuple2<>(target, 0L)));
        long part = vertex._2() / parts.size();
        parts.replaceAll(one -> new Tuple2<>(one._1(), part));
        return parts.iterator();
      }
    }

    /**
     * Another exchange of all columns, of which some are read. The optimizer cannot remove the
     * others.
     *
     * @param columns read
     */
    record SomeRead(Exchange of, List<String> columns) implements Exchange {
      @Override
      public Dataset<Row> shuffle(Dataset<Row> rows) {
        return read(of.shuffle(rows));
      }

      @Override
      public Dataset<Row> pass(Dataset<Row> rows) {
        return read(of.pass(rows));
      }

      private Dataset<Row> read(Dataset<Row> rows) {
        org.apache.spark.sql.classic.Dataset<Row> all =
            (org.apache.spark.sql.classic.Dataset<Row>) rows;
        return all.sparkSession()
            .internalCreateDataFrame(all.queryExecution().toRdd(), all.schema(), false)
            .select(columns.stream().map(functions::col).toArray(Column[]::new));
      }
    }
  }

  /**
   * Computes a short fingerprint of the rows of a shuffle. Equal rows in any order have equal
   * fingerprints.
   *
   * @param job whose rows are read
   */
  public record Fingerprint(ShuffleJob job) implements SideTask<String> {
    @Override
    public String run(SparkSession session) {
      try (Cached ignored = new Cached(session)) {
        return of(job.rows(session));
      }
    }

    private static String of(Dataset<Row> rows) {
      String values =
          Arrays.stream(rows.schema().fields())
              .map(Fingerprint::hashable)
              .collect(Collectors.joining(", "));
      return rows.selectExpr("xxhash64(" + values + ") as hash")
          .selectExpr("count(*)", "bit_xor(hash)", "sum(cast(hash as decimal(20, 0)))")
          .first()
          .mkString("/");
    }

    /** Spark refuses to hash maps. */
    private static String hashable(StructField field) {
      return field.dataType() instanceof MapType
          ? "map_entries(" + field.name() + ")"
          : field.name();
    }
  }

  /**
   * Sums the bytes of a source's rows in Spark's packed form.
   *
   * @param source whose rows are read
   */
  public record PackedBytes(Source source) implements SideTask<Long> {
    @Override
    public Long run(SparkSession session) {
      return source
          .rows(session)
          .queryExecution()
          .toRdd()
          .toJavaRDD()
          .map(row -> (long) ((UnsafeRow) row).getSizeInBytes())
          .fold(0L, Long::sum);
    }
  }
}
