package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.transfers.WeftTransfers;
import io.weft.transfers.ArrayPlacement;
import io.weft.transfers.BufferShape;
import io.weft.transfers.DeferredTransfer;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.ReceivedBuffer;
import io.weft.transfers.SourceBuffer;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Two tasks of an ordinary stage, one in each of two executors, that exchange arrays in memory of
 * their GPUs both ways.
 *
 * @param notes with which they find each other
 * @param libcuda the double, which reports broken rules
 * @param waits whether, afterwards, task 0 waits for an array that task 1 never sends; task 1 then
 *     waits to be killed
 */
public record GpuTransferJob(Notes notes, String libcuda, boolean waits) implements Serializable {
  private static final Duration TIMEOUT = Duration.ofMinutes(3);
  private static final int ARRAYS = 6;
  private static final int ROUNDS = 5;

  /**
   * The result of a task.
   *
   * @param gpu the number of its GPU
   * @param arrays number of arrays that arrived with the right values
   * @param violations of the driver's rules
   * @param failure of the transfer that task 0 waited for
   */
  public record Answer(
      int task, String executorId, int gpu, int arrays, String violations, String failure)
      implements Serializable {}

  /** Runs both tasks; returns their answers by number. */
  public List<Answer> run(SparkContext context) {
    return new JavaSparkContext(context).parallelize(List.of(0, 1), 2).map(this::task).collect();
  }

  /** Number of arrays that each task receives. */
  public static int arraysToEach() {
    return ROUNDS * (int) IntStream.range(0, ARRAYS).filter(i -> i % 2 == 0).count();
  }

  private Answer task(int number) {
    TaskContext task = TaskContext.get();
    DeviceId here =
        WeftTransfers.gpu()
            .orElseThrow(
                () -> new IllegalStateException(ExecutorGpu.current().obstacle().orElse("?")));
    if (task.attemptNumber() > 0) {
      return new Answer(number, here.executor(), 0, 0, "", "");
    }
    notes.leave("executor-" + number, here.executor());
    DeviceId there = WeftTransfers.gpuOf(notes.await("executor-" + (1 - number)));
    int arrays = 0;
    for (int round = 0; round < ROUNDS; round++) {
      arrays += exchange(number, here, there, round);
    }
    int gpu = ExecutorGpu.current().open().device().device().ordinal();
    String failure = waits ? suffer(number, here, there) : "";
    return new Answer(number, here.executor(), gpu, arrays, TestGpu.violations(libcuda), failure);
  }

  /** Returns how many arrays arrived with the right values. */
  private static int exchange(int number, DeviceId here, DeviceId there, int round) {
    List<TestGpu.Uploaded> sources = new ArrayList<>();
    List<DeferredTransfer> placed = new ArrayList<>();
    int arrived = 0;
    try (TestGpu gpu = new TestGpu()) {
      List<ArrayPlacement> placements = new ArrayList<>();
      for (int i = 0; i < ARRAYS; i++) {
        BufferShape shape = BufferShape.of(DataType.INT64, 10_000 * i + 1);
        long key = 100L * round + i;
        placements.add(
            i % 2 == number
                ? ArrayPlacement.of(source(gpu, here, shape, key, sources), there, shape, key)
                : ArrayPlacement.of(there, here, shape, key));
      }
      placed.addAll(WeftTransfers.transfers().place(placements));
      for (int i = 0; i < ARRAYS; i++) {
        placed.get(i).event().await(Deadline.after(TIMEOUT));
        if (placed.get(i).received().isPresent()) {
          check(gpu, placed.get(i).received().get().buffer(), 100L * round + i);
          arrived++;
        }
      }
      placed.forEach(DeferredTransfer::close);
    }
    sources.forEach(source -> source.memory().close());
    return arrived;
  }

  /** An array that is defined by its upload, which may still be running. */
  private static SourceBuffer source(
      TestGpu gpu, DeviceId here, BufferShape shape, long value, List<TestGpu.Uploaded> sources) {
    ByteBuffer memory =
        ByteBuffer.allocateDirect((int) shape.bytes()).order(ByteOrder.nativeOrder());
    while (memory.hasRemaining()) {
      memory.putLong(value);
    }
    TestGpu.Uploaded uploaded = gpu.upload(memory.clear());
    uploaded.event().awaitRecorded(Deadline.after(TIMEOUT));
    sources.add(uploaded);
    TypedBuffer buffer =
        TypedBuffer.at(uploaded.memory().address(), shape.type(), shape.bytes() / Long.BYTES);
    return new SourceBuffer(here, buffer, uploaded.event());
  }

  private static void check(TestGpu gpu, TypedBuffer buffer, long value) {
    ByteBuffer bytes = gpu.download(buffer.address(), buffer.bytes());
    for (int at = 0; at < buffer.bytes(); at += Long.BYTES) {
      if (bytes.getLong(at) != value) {
        throw new IllegalStateException(
            "byte %d of key %d is %d".formatted(at, value, bytes.getLong(at)));
      }
    }
  }

  /** Returns the message with which task 0's wait ended. */
  private String suffer(int number, DeviceId here, DeviceId there) {
    if (number == 1) {
      notes.await("waiting");
      notes.leave("victim", here.executor());
      awaitKill();
      return "";
    }
    DeviceTransfers transfers = WeftTransfers.transfers();
    BufferShape shape = BufferShape.of(DataType.FLOAT32, 1000);
    try (ReceivedBuffer never =
        transfers.receive(here, List.of(shape), List.of(there), new long[] {999}).get(0)) {
      notes.leave("waiting", here.executor());
      return end(never.event());
    }
  }

  private static String end(Event event) {
    try {
      event.await(Deadline.after(TIMEOUT));
      return "it arrived";
    } catch (EventFailedException e) {
      return String.valueOf(e.getCause().getMessage());
    }
  }

  private static void awaitKill() {
    Deadline deadline = Deadline.after(TIMEOUT);
    while (!TaskContext.get().isInterrupted() && !deadline.expired()) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
    }
  }
}
