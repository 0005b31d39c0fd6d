package io.weft.examples.jobs;

import static io.weft.metrics.ExchangeCounter.BYTES_SPILLED;
import static io.weft.metrics.ExchangeCounter.LOCAL_BYTES;
import static io.weft.metrics.ExchangeCounter.REMOTE_BYTES;
import static io.weft.metrics.ExchangeCounter.SAME_HOST_BYTES;

import com.sun.management.OperatingSystemMXBean;
import io.weft.examples.side.SideTask;
import io.weft.exchange.ExchangeStatistics;
import io.weft.spark.executor.WeftExecutor;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
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
 * Asks every executor for its totals. Made for executors of one core each: a barrier stage starts
 * all its tasks at once, so with as many tasks as executors each executor gets one.
 */
public record LookAtExecutors() implements SideTask<ExecutorTotals> {
  @Override
  public ExecutorTotals run(SparkSession session) {
    // The first is the driver.
    int infos = session.sparkContext().statusTracker().getExecutorInfos().length;
    int executors = Math.max(1, infos - 1);
    List<Integer> numbers = IntStream.range(0, executors).boxed().toList();
    ClassTag<ExecutorTotals> tag = ClassTag$.MODULE$.apply(ExecutorTotals.class);
    JavaRDD<ExecutorTotals> looks =
        JavaSparkContext.fromSparkContext(session.sparkContext())
            .parallelize(numbers, executors)
            .rdd()
            .barrier()
            .mapPartitions(new Look(), false, tag)
            .toJavaRDD();
    return looks.collect().stream().reduce(ExecutorTotals.NONE, ExecutorTotals::plus);
  }

  private static final class Look
      implements Function1<
              scala.collection.Iterator<Integer>, scala.collection.Iterator<ExecutorTotals>>,
          Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public scala.collection.Iterator<ExecutorTotals> apply(
        scala.collection.Iterator<Integer> partition) {
      Iterator<ExecutorTotals> one = Collections.singleton(here()).iterator();
      return CollectionConverters.asScala(one);
    }

    private static ExecutorTotals here() {
      OperatingSystemMXBean process =
          (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
      double cpuSeconds = process.getProcessCpuTime() / 1e9;
      return WeftExecutor.current()
          .map(exchange -> withWeft(cpuSeconds, exchange.statistics()))
          .orElse(new ExecutorTotals(1, cpuSeconds, 0, 0, 0, 0, 0));
    }

    private static ExecutorTotals withWeft(double cpuSeconds, ExchangeStatistics weft) {
      return new ExecutorTotals(
          1,
          cpuSeconds,
          weft.get(LOCAL_BYTES),
          weft.get(SAME_HOST_BYTES),
          weft.get(REMOTE_BYTES),
          weft.get(BYTES_SPILLED),
          weft.arena().freshBytes());
    }
  }
}
