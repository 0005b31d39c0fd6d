package io.weft.tests.application;

import com.codahale.metrics.Gauge;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.metrics.source.Source;
import org.apache.spark.rdd.RDD;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Reads the metrics that Weft registers with Spark in every executor, from the driver. */
public final class ExecutorProbe {
  private static final String SOURCE = "plugin.io.weft.spark.WeftPlugin";

  private ExecutorProbe() {}

  /** The answer of one executor; not a record, which Kryo could not read. */
  private static final class Figures implements Serializable {
    private static final long serialVersionUID = 1L;

    private final String executorId;
    private final TreeMap<String, Long> values;

    Figures(String executorId, TreeMap<String, Long> values) {
      this.executorId = executorId;
      this.values = values;
    }
  }

  /** A serializable Scala function. */
  private interface TaskFunction<A, B> extends Function1<A, B>, Serializable {}

  /**
   * The metrics of Weft on each executor, by executor id and name.
   *
   * <p>All task slots of the cluster run one task at the same time (a barrier stage), so that no
   * executor is left out.
   */
  public static Map<String, Map<String, Long>> statistics(SparkContext context) {
    int slots = context.defaultParallelism();
    List<Integer> numbers = new ArrayList<>(IntStream.range(0, slots).boxed().toList());
    RDD<Integer> tasks = new JavaSparkContext(context).parallelize(numbers, slots).rdd();
    TaskFunction<Iterator<Integer>, Iterator<Figures>> look = ignored -> look();
    ClassTag<Figures> tag = ClassTag$.MODULE$.apply(Figures.class);
    Map<String, Map<String, Long>> found = new TreeMap<>();
    new JavaRDD<>(tasks.barrier().mapPartitions(look, false, tag), tag)
        .collect()
        .forEach(figures -> found.put(figures.executorId, figures.values));
    return found;
  }

  /** The sum of one metric over all executors. */
  public static long sum(SparkContext context, String name) {
    return statistics(context).values().stream()
        .mapToLong(values -> values.getOrDefault(name, 0L))
        .sum();
  }

  private static Iterator<Figures> look() {
    TreeMap<String, Long> values = new TreeMap<>();
    for (Source source :
        CollectionConverters.asJava(SparkEnv.get().metricsSystem().getSourcesByName(SOURCE))) {
      source.metricRegistry().getGauges().forEach((name, gauge) -> values.put(name, number(gauge)));
      source
          .metricRegistry()
          .getCounters()
          .forEach((name, counter) -> values.put(name, counter.getCount()));
    }
    List<Figures> answer = List.of(new Figures(SparkEnv.get().executorId(), values));
    return CollectionConverters.asScala(answer.iterator());
  }

  private static long number(Gauge<?> gauge) {
    return gauge.getValue() instanceof Number number ? number.longValue() : 0;
  }
}
