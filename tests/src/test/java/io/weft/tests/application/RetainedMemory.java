package io.weft.tests.application;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.spark.runtime.WeftExecutor;
import java.io.InterruptedIOException;
import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Fills the memory for retained extents on every executor. Tasks that all run at the same time
 * allocate and free it, so that no executor is left out.
 */
public final class RetainedMemory implements AutoCloseable {
  private static final int EXTENT = 64 << 10;

  /** The extents of this executor; guarded by itself. */
  private static final Queue<Extent> KEPT = new ArrayDeque<>();

  private final SparkContext context;

  private RetainedMemory(SparkContext context) {
    this.context = context;
  }

  /** A serializable Scala function. */
  private interface TaskFunction<A, B> extends Function1<A, B>, Serializable {}

  /** Allocates all of it; at least one extent on each executor. */
  public static RetainedMemory fill(SparkContext context) {
    TaskFunction<Iterator<Integer>, Iterator<Integer>> take = ignored -> one(takeAll());
    run(context, take);
    return new RetainedMemory(context);
  }

  private static void run(
      SparkContext context, TaskFunction<Iterator<Integer>, Iterator<Integer>> task) {
    int slots = context.defaultParallelism();
    List<Integer> numbers = new ArrayList<>(IntStream.range(0, slots).boxed().toList());
    ClassTag<Integer> tag = ClassTag$.MODULE$.apply(Integer.class);
    JavaRDD<Integer> tasks = new JavaSparkContext(context).parallelize(numbers, slots);
    new JavaRDD<>(tasks.rdd().barrier().mapPartitions(task, false, tag), tag).collect();
  }

  private static Iterator<Integer> one(int number) {
    return CollectionConverters.asScala(List.of(number).iterator());
  }

  private static int takeAll() {
    SharedArena arena = WeftExecutor.exchange().arena();
    synchronized (KEPT) {
      try {
        while (true) {
          KEPT.add(arena.allocate(EXTENT, Use.RETAINED));
        }
      } catch (ArenaFullException | InterruptedIOException e) {
        return KEPT.size();
      }
    }
  }

  private static int giveBack() {
    SharedArena arena = WeftExecutor.exchange().arena();
    synchronized (KEPT) {
      int count = KEPT.size();
      KEPT.forEach(arena::free);
      KEPT.clear();
      return count;
    }
  }

  /** Frees it. */
  @Override
  public void close() {
    TaskFunction<Iterator<Integer>, Iterator<Integer>> give = ignored -> one(giveBack());
    run(context, give);
  }
}
