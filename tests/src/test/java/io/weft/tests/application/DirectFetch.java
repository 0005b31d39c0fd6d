package io.weft.tests.application;

import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.Dependency;
import org.apache.spark.Partition;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockFetcherIterator;
import org.apache.spark.util.SystemClock;
import scala.Function2;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Shuffles rows as libraries do that plan an exchange of their own and fetch its blocks by Spark's
 * iterator, without the reader of the shuffle manager.
 */
public final class DirectFetch {
  private static final ClassTag<String> TEXT = ClassTag$.MODULE$.apply(String.class);
  private static final int PARTITIONS_PER_TASK = 2;

  private DirectFetch() {}

  /**
   * Returns the rows of a data set, after a shuffle by its first column, each as one text.
   *
   * @param data an int64 and a string
   * @param partitions an even number
   * @param batches whether adjacent blocks are fetched as one
   */
  public static List<String> rows(Dataset<Row> data, int partitions, boolean batches) {
    return shuffled(data, partitions, batches).collect();
  }

  /** Like {@link #rows}, but each action of the result reads the same shuffle. */
  public static JavaRDD<String> shuffled(Dataset<Row> data, int partitions, boolean batches) {
    SparkPlan plan = data.queryExecution().executedPlan();
    Attribute key = plan.output().head();
    List<Expression> keys = List.of(key);
    ShuffleExchangeExec exchange =
        new ShuffleExchangeExec(
            new HashPartitioning(CollectionConverters.asScala(keys).toSeq(), partitions),
            plan,
            ENSURE_REQUIREMENTS$.MODULE$,
            Option.empty());
    SparkContext context = data.sparkSession().sparkContext();
    return new JavaRDD<>(
        new FetchedRows(context, exchange.shuffleDependency(), partitions, batches), TEXT);
  }

  /** The task of adjacent partitions of the shuffle. */
  private record Split(int index) implements Partition {
    private static final long serialVersionUID = 1L;

    @Override
    public int hashCode() {
      return index;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Split split && split.index == index;
    }
  }

  /** The rows of a shuffle, as texts. */
  private static final class FetchedRows extends RDD<String> {
    private static final long serialVersionUID = 1L;

    private final ShuffleDependency<?, ?, ?> dependency;
    private final int partitions;
    private final boolean batches;

    FetchedRows(
        SparkContext context,
        ShuffleDependency<?, ?, ?> dependency,
        int partitions,
        boolean batches) {
      super(
          context, CollectionConverters.asScala(List.<Dependency<?>>of(dependency)).toSeq(), TEXT);
      this.dependency = dependency;
      this.partitions = partitions;
      this.batches = batches;
    }

    @Override
    public Partition[] getPartitions() {
      Partition[] splits = new Partition[partitions / PARTITIONS_PER_TASK];
      for (int i = 0; i < splits.length; i++) {
        splits[i] = new Split(i);
      }
      return splits;
    }

    @Override
    public Iterator<String> compute(Partition split, TaskContext context) {
      ShuffleBlockFetcherIterator blocks = fetch(split.index() * PARTITIONS_PER_TASK, context);
      SerializerInstance serializer = dependency.serializer().newInstance();
      List<String> texts = new ArrayList<>();
      while (blocks.hasNext()) {
        Iterator<Tuple2<Object, Object>> rows =
            serializer.deserializeStream(blocks.next()._2()).asKeyValueIterator();
        while (rows.hasNext()) {
          InternalRow row = (InternalRow) rows.next()._2();
          texts.add(row.getLong(0) + " " + row.getUTF8String(1));
        }
      }
      return CollectionConverters.asScala(texts.iterator());
    }

    private ShuffleBlockFetcherIterator fetch(int first, TaskContext context) {
      SparkEnv env = SparkEnv.get();
      Function2<BlockId, InputStream, InputStream> unwrap =
          (id, bytes) -> env.serializerManager().wrapStream(id, bytes);
      return new ShuffleBlockFetcherIterator(
          context,
          env.blockManager().blockStoreClient(),
          env.blockManager(),
          env.mapOutputTracker(),
          env.mapOutputTracker()
              .getMapSizesByExecutorId(
                  dependency.shuffleId(), 0, Integer.MAX_VALUE, first, first + PARTITIONS_PER_TASK),
          unwrap,
          1 << 20,
          Integer.MAX_VALUE,
          Integer.MAX_VALUE,
          200 << 20,
          10,
          true,
          false,
          true,
          "ADLER32",
          context.taskMetrics().createTempShuffleReadMetrics(),
          batches,
          new SystemClock());
    }
  }
}
