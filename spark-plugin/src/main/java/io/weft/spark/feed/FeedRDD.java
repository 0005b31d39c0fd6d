package io.weft.spark.feed;

import io.weft.spark.sql.ScalaInterop;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.Dependency;
import org.apache.spark.Partition;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TempShuffleReadMetrics;
import org.apache.spark.rdd.RDD;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The reduce side of a feed's shuffle: one partition per rank, with its shard as the only element.
 */
final class FeedRDD extends RDD<FeedShard> {
  private FeedDependency dependency;
  private final int ranks;
  private final int[][] rows;

  /** A rank, as a partition. */
  private record Rank(int index) implements Partition {
    // Named as the accessor of Spark's Partition.
  }

  /**
   * @param rows by map task and partition, as written
   */
  FeedRDD(FeedDependency dependency, int[][] rows) {
    super(dependency.rdd().context(), ScalaInterop.seq(), ScalaInterop.tag(FeedShard.class));
    this.dependency = dependency;
    this.ranks = dependency.spec().ranks();
    this.rows = rows;
  }

  @Override
  public Seq<Dependency<?>> getDependencies() {
    return ScalaInterop.seq((Dependency<?>) dependency);
  }

  @Override
  public Partition[] getPartitions() {
    return IntStream.range(0, ranks).mapToObj(Rank::new).toArray(Partition[]::new);
  }

  @Override
  public Iterator<FeedShard> compute(Partition split, TaskContext context) {
    RankFailure.tellBegin(dependency.shuffleId(), split.index(), context);
    TempShuffleReadMetrics metrics = context.taskMetrics().createTempShuffleReadMetrics();
    FeedReader<?, ?> reader =
        (FeedReader<?, ?>)
            SparkEnv.get()
                .shuffleManager()
                .getReader(
                    dependency.shuffleHandle(), 0, Integer.MAX_VALUE, 0, ranks, context, metrics);
    return CollectionConverters.asScala(List.of(reader.shard(rows, split.index())).iterator());
  }

  @Override
  public void clearDependencies() {
    super.clearDependencies();
    dependency = null;
  }
}
