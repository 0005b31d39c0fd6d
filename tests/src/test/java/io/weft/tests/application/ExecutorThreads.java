package io.weft.tests.application;

import java.util.List;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;

/** The threads of Weft that run in the executors. */
public final class ExecutorThreads {
  private ExecutorThreads() {}

  /**
   * Their names, on all executors that the tasks run on.
   *
   * @param tasks as many as the cluster runs at the same time
   */
  public static List<String> names(SparkContext context, int tasks) {
    List<Integer> numbers = IntStream.range(0, tasks).boxed().toList();
    return new JavaSparkContext(context)
        .parallelize(numbers, tasks).flatMap(ignored -> here().iterator()).collect().stream()
            .distinct()
            .toList();
  }

  private static List<String> here() {
    TreeSet<String> names = new TreeSet<>();
    Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("weft"))
        .forEach(names::add);
    return List.copyOf(names);
  }
}
