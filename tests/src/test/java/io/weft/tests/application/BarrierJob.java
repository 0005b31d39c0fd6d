package io.weft.tests.application;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.spark.collectives.WeftCollectives;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * A barrier stage whose tasks add up numbers together: the rank plus one, in every element of a
 * small and of a large buffer. A shuffle follows, so that Spark repeats the stage when a task
 * fails.
 *
 * @param folder where tasks leave notes for the test
 * @param mishap the failure of the last rank in the first attempt, after it got its communicator
 *     and its buffers
 * @param memory of the buffers
 */
public record BarrierJob(String folder, Mishap mishap, Buffers memory) implements Serializable {
  private static final int LARGE_BYTES = 3 << 20;
  private static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(3);

  /** The kind of memory of a task. */
  public enum Buffers {
    /** Direct buffers of the task. */
    PRIVATE,
    SYMMETRIC
  }

  /** How a task fails. */
  public enum Mishap {
    NONE,
    /** It throws. */
    FAILS,
    /** It writes {@code waiting} with its executor's id and waits to be killed. */
    WAITS
  }

  /** The result of a task. */
  public record Answer(int rank, String executorId, String communicator, long sum)
      implements Serializable {}

  /** A serializable Scala function. */
  private interface TaskFunction<A, B> extends Function1<A, B>, Serializable {}

  /**
   * Runs it with this number of tasks; returns the answers of the successful attempt, in any order.
   */
  public List<Answer> run(SparkContext context, int tasks) {
    List<Integer> numbers = IntStream.range(0, tasks).boxed().toList();
    RDD<Integer> rdd = new JavaSparkContext(context).parallelize(numbers, tasks).rdd();
    TaskFunction<Iterator<Integer>, Iterator<Answer>> function = ignored -> answer();
    ClassTag<Answer> tag = ClassTag$.MODULE$.apply(Answer.class);
    return new JavaRDD<>(rdd.barrier().mapPartitions(function, false, tag), tag)
        .repartition(1)
        .collect();
  }

  private Iterator<Answer> answer() {
    BarrierTaskContext task = BarrierTaskContext.get();
    Communicator communicator = WeftCollectives.communicator(task);
    note(
        "attempt-" + task.stageAttemptNumber() + "-" + task.partitionId(),
        communicator.id().name());
    TypedBuffer small = allocate(task, 8);
    TypedBuffer large = allocate(task, LARGE_BYTES);
    if (task.stageAttemptNumber() == 0 && communicator.rank() == communicator.nranks() - 1) {
      suffer(task);
    }
    try {
      long sum = sum(communicator, small) + sum(communicator, large);
      Answer answer =
          new Answer(
              communicator.rank(), SparkEnv.get().executorId(), communicator.id().name(), sum);
      return CollectionConverters.asScala(List.of(answer).iterator());
    } catch (RuntimeException e) {
      note("failure-" + task.stageAttemptNumber() + "-" + task.partitionId(), e.getMessage());
      throw e;
    }
  }

  private void suffer(BarrierTaskContext task) {
    if (mishap == Mishap.FAILS) {
      throw new IllegalStateException("failed, as the test asked");
    }
    if (mishap == Mishap.WAITS) {
      note("waiting", SparkEnv.get().executorId());
      long deadline = System.nanoTime() + LIMIT_NANOS;
      while (!task.isInterrupted() && System.nanoTime() < deadline) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
      }
    }
  }

  /** All-reduces a buffer of rank + 1 everywhere; returns the sum, which all elements must have. */
  private static long sum(Communicator communicator, TypedBuffer buffer) {
    long first = buffer.address();
    long end = first + buffer.bytes();
    for (long at = first; at < end; at += 8) {
      if (Memory.getLong(at) != 0) {
        throw new IllegalStateException("a buffer of an earlier stage: " + Memory.getLong(at));
      }
      Memory.putLong(at, communicator.rank() + 1);
    }
    communicator.allReduce(buffer, ReduceOp.SUM);
    for (long at = first; at < end; at += 8) {
      if (Memory.getLong(at) != Memory.getLong(first)) {
        throw new IllegalStateException(
            "byte %d is %d, the first %d"
                .formatted(at - first, Memory.getLong(at), Memory.getLong(first)));
      }
    }
    return Memory.getLong(first);
  }

  private TypedBuffer allocate(BarrierTaskContext task, int bytes) {
    if (memory == Buffers.PRIVATE) {
      return TypedBuffer.wrap(ByteBuffer.allocateDirect(bytes), DataType.INT64);
    }
    SymmetricBuffer buffer = WeftCollectives.symmetric(task, DataType.INT64, bytes / 8);
    buffer
        .whyPrivate()
        .ifPresent(
            reason -> {
              throw new IllegalStateException(reason);
            });
    return buffer.elements();
  }

  /** Writes a file atomically, for a test that waits for it. */
  private void note(String name, String text) {
    try {
      Path draft = Files.createTempFile(Path.of(folder), "draft-", ".txt");
      Files.writeString(draft, text);
      Files.move(draft, Path.of(folder, name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
