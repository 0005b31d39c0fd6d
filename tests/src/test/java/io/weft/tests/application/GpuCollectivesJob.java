package io.weft.tests.application;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.RaggedExchange;
import io.weft.collectives.Receive;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.spark.collectives.WeftCollectives;
import io.weft.spark.gpu.ExecutorGpu;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
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
 * A barrier stage of two tasks, one in each executor, that run collectives in memory of their GPUs
 * and check every result. A shuffle follows, so that Spark repeats the stage when a task fails.
 *
 * @param notes for the test
 * @param libcuda the double, which reports broken rules
 * @param mishap of the last rank in the first attempt, after it got its buffers
 */
public record GpuCollectivesJob(Notes notes, String libcuda, Mishap mishap)
    implements Serializable {
  private static final int TASKS = 2;
  private static final int COUNT = 300_000;
  private static final Duration SHORT = Duration.ofSeconds(20);
  private static final Duration LONG = Duration.ofSeconds(90);

  /** How a task fails. */
  public enum Mishap {
    NONE,
    /** It throws. */
    FAILS,
    /** It does not come to an all-reduce within its timeout. */
    LATE,
    /** It leaves the note {@code waiting} with its executor's id and waits to be killed. */
    WAITS
  }

  /**
   * The result of a task.
   *
   * @param gpu the number of its GPU; -1 without one
   * @param failures results that are wrong
   * @param violations of the driver's rules
   * @param refusal why there is no communicator of GPUs; empty if there is
   */
  public record Answer(
      int rank,
      String executorId,
      int gpu,
      ArrayList<String> failures,
      String violations,
      String refusal)
      implements Serializable {}

  /** A serializable Scala function. */
  private interface TaskFunction<A, B> extends Function1<A, B>, Serializable {}

  /** Returns the answers of the successful attempt, in any order. */
  public List<Answer> run(SparkContext context) {
    RDD<Integer> rdd = new JavaSparkContext(context).parallelize(List.of(0, 1), TASKS).rdd();
    TaskFunction<Iterator<Integer>, Iterator<Answer>> function =
        ignored -> CollectionConverters.asScala(List.of(answer()).iterator());
    ClassTag<Answer> tag = ClassTag$.MODULE$.apply(Answer.class);
    return new JavaRDD<>(rdd.barrier().mapPartitions(function, false, tag), tag)
        .repartition(1)
        .collect();
  }

  private Answer answer() {
    BarrierTaskContext task = BarrierTaskContext.get();
    String executor = SparkEnv.get().executorId();
    ArrayList<String> failures = new ArrayList<>();
    GpuCommunicator communicator;
    try {
      communicator = WeftCollectives.onGpu(task, mishap == Mishap.LATE ? SHORT : LONG);
    } catch (CollectiveException e) {
      check(failures, "the hosts' sum", hostSum(WeftCollectives.communicator(task)), 3);
      return new Answer(
          task.partitionId(), executor, -1, failures, "", e.kind() + ": " + e.getMessage());
    }
    try {
      new Rank(communicator, failures).run();
      if (task.stageAttemptNumber() == 0) {
        suffer(task, communicator);
      }
      check(failures, "the hosts' sum", hostSum(WeftCollectives.communicator(task)), 3);
      int gpu = ExecutorGpu.current().open().device().device().ordinal();
      return new Answer(
          communicator.rank(), executor, gpu, failures, TestGpu.violations(libcuda), "");
    } catch (RuntimeException e) {
      notes.leave("failure-" + task.partitionId(), String.valueOf(e.getMessage()));
      throw e;
    }
  }

  private void suffer(BarrierTaskContext task, GpuCommunicator communicator) {
    boolean isLast = communicator.rank() == communicator.nranks() - 1;
    if (mishap == Mishap.FAILS && isLast) {
      throw new IllegalStateException("failed, as the test asked");
    }
    if (mishap == Mishap.LATE && isLast) {
      notes.await("failure-0");
      throw new IllegalStateException("late, as the test asked");
    }
    if (mishap == Mishap.WAITS && isLast) {
      notes.leave("waiting", SparkEnv.get().executorId());
      long deadline = System.nanoTime() + LONG.toNanos();
      while (!task.isInterrupted() && System.nanoTime() < deadline) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
      }
    }
    if (mishap != Mishap.NONE) {
      communicator.allReduce(communicator.onDevice(DataType.INT64, 1).elements(), ReduceOp.SUM);
    }
  }

  private static long hostSum(Communicator communicator) {
    TypedBuffer host = onHost(communicator.rank() + 1);
    communicator.allReduce(host, ReduceOp.SUM);
    return values(host)[0];
  }

  private static void check(List<String> failures, String what, Object value, Object expected) {
    if (!String.valueOf(value).equals(String.valueOf(expected))) {
      failures.add(what + " is " + value + ", not " + expected);
    }
  }

  private static TypedBuffer onHost(long... values) {
    TypedBuffer host =
        TypedBuffer.wrap(ByteBuffer.allocateDirect(Long.BYTES * values.length), DataType.INT64);
    for (int i = 0; i < values.length; i++) {
      Memory.putLong(host.address() + 8L * i, values[i]);
    }
    return host;
  }

  private static long[] values(TypedBuffer host) {
    long[] values = new long[(int) host.count()];
    Arrays.setAll(values, i -> Memory.getLong(host.address() + 8L * i));
    return values;
  }

  /** The collectives of one rank. */
  private static final class Rank {
    private final GpuCommunicator communicator;
    private final List<String> failures;
    private final int rank;
    private final int other;

    Rank(GpuCommunicator communicator, List<String> failures) {
      this.communicator = communicator;
      this.failures = failures;
      this.rank = communicator.rank();
      this.other = 1 - rank;
    }

    void run() {
      reduce();
      gather();
      exchangeRows();
      sendAndReceive();
      replay();
    }

    private GpuBuffer buffer(long count) {
      GpuBuffer buffer = communicator.onDevice(DataType.INT64, count);
      check(failures, "the window", buffer.whyNoWindow(), "Optional.empty");
      check(failures, "a fresh sum", LongStream.of(read(buffer)).map(Math::abs).sum(), 0);
      return buffer;
    }

    private static long[] read(GpuBuffer buffer) {
      TypedBuffer host = onHost(new long[(int) buffer.elements().count()]);
      buffer.read(host, 0);
      return values(host);
    }

    private void reduce() {
      GpuBuffer data = buffer(COUNT);
      data.write(onHost(LongStream.range(0, COUNT).map(i -> i * (rank + 1)).toArray()), 0);
      communicator.allReduce(data.elements(), ReduceOp.SUM);
      long[] expected = LongStream.range(0, COUNT).map(i -> 3 * i).toArray();
      check(failures, "the sum", Arrays.hashCode(read(data)), Arrays.hashCode(expected));
    }

    private void gather() {
      GpuBuffer all = buffer(TASKS);
      all.write(onHost(10L + rank), rank);
      communicator.allGather(all.elements().slice(rank, 1), all.elements());
      check(failures, "what was gathered", Arrays.toString(read(all)), "[10, 11]");
      GpuBuffer part = buffer(1);
      communicator.reduceScatter(all.elements(), part.elements(), ReduceOp.SUM);
      check(failures, "the scattered sum", read(part)[0], 20 + 2 * rank);
      communicator.broadcast(part.elements(), 1);
      check(failures, "what was broadcast", read(part)[0], 22);
    }

    /** Rank r sends r + 1 rows to rank 0 and r + 2 rows to rank 1. */
    private void exchangeRows() {
      GpuBuffer send = buffer(5);
      send.write(onHost(LongStream.range(0, 5).map(i -> 100 * rank + i).toArray()), 0);
      try (RaggedExchange exchange = new RaggedExchange(communicator, DataType.INT64, 1)) {
        TypedBuffer received = exchange.exchange(send.elements(), rank + 1L, rank + 2L);
        GpuBuffer copy = buffer(5);
        copy.write(received, 0);
        String expected = rank == 0 ? "[0, 100, 101, 0, 0]" : "[1, 2, 102, 103, 104]";
        check(failures, "the rows", Arrays.toString(read(copy)), expected);
      }
    }

    private void sendAndReceive() {
      GpuBuffer out = buffer(3);
      GpuBuffer in = buffer(3);
      out.write(onHost(rank, 7, 8), 0);
      communicator.runGroup(
          List.of(new Send(out.elements(), other), new Receive(in.elements(), other)));
      check(failures, "the message", Arrays.toString(read(in)), "[" + other + ", 7, 8]");
    }

    private void replay() {
      GpuBuffer sum = buffer(2);
      sum.write(onHost(rank + 1, 1), 0);
      try (Recording recording =
          communicator.record(recorded -> recorded.allReduce(sum.elements(), ReduceOp.SUM))) {
        check(failures, "the graph", recording.whyNoGraph(), "Optional.empty");
        recording.replay();
        recording.replay();
      }
      check(failures, "the replayed sum", Arrays.toString(read(sum)), "[6, 4]");
    }
  }
}
