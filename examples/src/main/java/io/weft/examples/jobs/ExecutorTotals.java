package io.weft.examples.jobs;

import static io.weft.shuffle.peer.ExchangeCounter.BYTES_SPILLED;
import static io.weft.shuffle.peer.ExchangeCounter.LOCAL_BYTES;
import static io.weft.shuffle.peer.ExchangeCounter.REMOTE_BYTES;
import static io.weft.shuffle.peer.ExchangeCounter.SAME_HOST_BYTES;

import io.weft.examples.side.SideTask;
import io.weft.shuffle.ExchangeStatistics;
import io.weft.spark.runtime.WeftExecutor;
import java.io.Serializable;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Sums over the executors of a side, each since its start. The counters of Weft are 0 where Weft is
 * off.
 *
 * @param executors that answered
 * @param ownBytes read in place by the executor that wrote them
 * @param sameHostBytes read in place by another executor on the host
 * @param networkBytes received over the network
 * @param spilledBytes written to segments on disk because shared memory was full
 * @param freshBytes of shared memory touched for the first time
 */
public record ExecutorTotals(
    int executors,
    long ownBytes,
    long sameHostBytes,
    long networkBytes,
    long spilledBytes,
    long freshBytes)
    implements Serializable {
  /** All zero. */
  public static final ExecutorTotals NONE = new ExecutorTotals(0, 0, 0, 0, 0, 0);

  /** Returns the sum of both. */
  public ExecutorTotals plus(ExecutorTotals other) {
    return new ExecutorTotals(
        executors + other.executors,
        ownBytes + other.ownBytes,
        sameHostBytes + other.sameHostBytes,
        networkBytes + other.networkBytes,
        spilledBytes + other.spilledBytes,
        freshBytes + other.freshBytes);
  }

  /** Returns the difference to an earlier state of the same executors. */
  public ExecutorTotals since(ExecutorTotals earlier) {
    return new ExecutorTotals(
        executors,
        ownBytes - earlier.ownBytes,
        sameHostBytes - earlier.sameHostBytes,
        networkBytes - earlier.networkBytes,
        spilledBytes - earlier.spilledBytes,
        freshBytes - earlier.freshBytes);
  }

  /** Returns all bytes read through Weft. */
  public long readBytes() {
    return ownBytes + sameHostBytes + networkBytes;
  }

  /**
   * Asks every executor for its totals. Executors must have one core each: a barrier stage starts
   * all its tasks at once, so with one task for each executor every executor gets one.
   */
  public record Collect() implements SideTask<ExecutorTotals> {
    @Override
    public ExecutorTotals run(SparkSession session) {
      // The first entry is the driver.
      int infos = session.sparkContext().statusTracker().getExecutorInfos().length;
      int executors = Math.max(1, infos - 1);
      List<Integer> numbers = IntStream.range(0, executors).boxed().toList();
      ClassTag<ExecutorTotals> tag = ClassTag$.MODULE$.apply(ExecutorTotals.class);
      JavaRDD<ExecutorTotals> totals =
          JavaSparkContext.fromSparkContext(session.sparkContext())
              .parallelize(numbers, executors)
              .rdd()
              .barrier()
              .mapPartitions(new OnExecutor(), false, tag)
              .toJavaRDD();
      return totals.collect().stream().reduce(ExecutorTotals.NONE, ExecutorTotals::plus);
    }

    private static final class OnExecutor
        implements Function1<
                scala.collection.Iterator<Integer>, scala.collection.Iterator<ExecutorTotals>>,
            Serializable {
      private static final long serialVersionUID = 1L;

      @Override
      public scala.collection.Iterator<ExecutorTotals> apply(
          scala.collection.Iterator<Integer> partition) {
        Iterator<ExecutorTotals> one = Collections.singleton(ofThisProcess()).iterator();
        return CollectionConverters.asScala(one);
      }

      private static ExecutorTotals ofThisProcess() {
        return WeftExecutor.current()
            .map(exchange -> withWeft(exchange.statistics()))
            .orElse(new ExecutorTotals(1, 0, 0, 0, 0, 0));
      }

      private static ExecutorTotals withWeft(ExchangeStatistics weft) {
        return new ExecutorTotals(
            1,
            weft.get(LOCAL_BYTES),
            weft.get(SAME_HOST_BYTES),
            weft.get(REMOTE_BYTES),
            weft.get(BYTES_SPILLED),
            weft.arena().freshBytes());
      }
    }
  }
}
