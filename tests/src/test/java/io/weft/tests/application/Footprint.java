package io.weft.tests.application;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** What an executor's process holds: not a record, which Kryo could not read. */
public final class Footprint implements Serializable {
  private static final long serialVersionUID = 1L;

  private final String executorId;
  private final long descriptors;
  private final long threads;
  private final long maps;
  private final long heapBytes;

  private Footprint(String executorId, long descriptors, long threads, long maps, long heapBytes) {
    this.executorId = executorId;
    this.descriptors = descriptors;
    this.threads = threads;
    this.maps = maps;
    this.heapBytes = heapBytes;
  }

  /** A serializable Scala function. */
  private interface TaskFunction<A, B> extends Function1<A, B>, Serializable {}

  /**
   * Measures each executor after a garbage collection; the largest number of all executors. All
   * task slots run one task at the same time, so that no executor is left out.
   */
  public static Footprint largest(SparkContext context) {
    int slots = context.defaultParallelism();
    List<Integer> numbers = new ArrayList<>(IntStream.range(0, slots).boxed().toList());
    JavaRDD<Integer> tasks = new JavaSparkContext(context).parallelize(numbers, slots);
    TaskFunction<Iterator<Integer>, Iterator<Footprint>> look =
        ignored -> CollectionConverters.asScala(List.of(here()).iterator());
    ClassTag<Footprint> tag = ClassTag$.MODULE$.apply(Footprint.class);
    TreeMap<String, Footprint> found = new TreeMap<>();
    new JavaRDD<>(tasks.rdd().barrier().mapPartitions(look, false, tag), tag)
        .collect()
        .forEach(each -> found.put(each.executorId, each));
    return found.values().stream().reduce(Footprint::max).orElseThrow();
  }

  private static Footprint max(Footprint one, Footprint other) {
    return new Footprint(
        "largest",
        Math.max(one.descriptors, other.descriptors),
        Math.max(one.threads, other.threads),
        Math.max(one.maps, other.maps),
        Math.max(one.heapBytes, other.heapBytes));
  }

  private static Footprint here() {
    System.gc();
    long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    return new Footprint(
        SparkEnv.get().executorId(), entries("fd"), entries("task"), lines("maps"), heap);
  }

  private static long entries(String folder) {
    try (Stream<Path> entries = Files.list(Path.of("/proc/self/" + folder))) {
      return entries.count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static long lines(String file) {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/" + file))) {
      return lines.count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  public long descriptors() {
    return descriptors;
  }

  public long threads() {
    return threads;
  }

  public long maps() {
    return maps;
  }

  public long heapBytes() {
    return heapBytes;
  }

  @Override
  public String toString() {
    return descriptors
        + " descriptors, "
        + threads
        + " threads, "
        + maps
        + " maps, "
        + (heapBytes >> 10)
        + " KiB of heap";
  }
}
