package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.memory.Memory;
import io.weft.spark.transfers.WeftTransfers;
import io.weft.tensor.codec.CodecKind;
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
 * Two tasks of an ordinary stage, one in each of two executors, that find each other by notes in a
 * folder and exchange arrays both ways.
 *
 * @param folder where tasks leave notes
 * @param waits whether, afterwards, task 0 waits for an array that task 1 never sends; task 1 then
 *     waits to be killed
 */
public record TransferJob(String folder, boolean waits) implements Serializable {
  private static final Duration TIMEOUT = Notes.TIMEOUT;
  private static final int ARRAYS = 6;
  private static final int ROUNDS = 5;

  /** The result of a task. */
  public record Answer(int task, String executorId, int arrays, String failure)
      implements Serializable {}

  /** Runs both tasks; returns their answers by number. */
  public List<Answer> run(SparkContext context) {
    return new JavaSparkContext(context).parallelize(List.of(0, 1), 2).map(this::task).collect();
  }

  private Notes notes() {
    return new Notes(folder);
  }

  private Answer task(int number) {
    TaskContext task = TaskContext.get();
    DeviceId here = WeftTransfers.device();
    if (task.attemptNumber() > 0) {
      return new Answer(number, here.executor(), 0, "");
    }
    notes().leave("executor-" + number, here.executor());
    DeviceId there = new DeviceId(notes().await("executor-" + (1 - number)), 0);
    int arrays = 0;
    for (int round = 0; round < ROUNDS; round++) {
      arrays += exchange(number, here, there, round);
    }
    return new Answer(number, here.executor(), arrays, waits ? suffer(number, here, there) : "");
  }

  /** Returns how many arrays arrived with the right values. */
  private static int exchange(int number, DeviceId here, DeviceId there, int round) {
    DeviceTransfers transfers = WeftTransfers.transfers();
    List<ArrayPlacement> placements = new ArrayList<>();
    for (int i = 0; i < ARRAYS; i++) {
      int from = i % 2;
      BufferShape shape = BufferShape.of(i < 3 ? DataType.INT64 : DataType.FLOAT64, 10_000 * i + 1);
      long key = 100L * round + i;
      placements.add(
          from == number
              ? ArrayPlacement.of(SourceBuffer.of(here, filled(shape, key)), there, shape, key)
              : ArrayPlacement.of(there, here, shape, key));
    }
    // The last ones are encoded; all of their bits must arrive as well.
    CodecKind codec = round == ROUNDS - 1 ? CodecKind.ZSTD : CodecKind.NONE;
    List<DeferredTransfer> placed = transfers.place(placements, codec);
    int arrived = 0;
    for (int i = 0; i < ARRAYS; i++) {
      placed.get(i).event().await(Deadline.after(TIMEOUT));
      if (placed.get(i).received().isPresent()) {
        check(placed.get(i).received().get().buffer(), 100L * round + i);
        arrived++;
      }
    }
    placed.forEach(DeferredTransfer::close);
    return arrived;
  }

  static TypedBuffer filled(BufferShape shape, long value) {
    ByteBuffer memory =
        ByteBuffer.allocateDirect((int) shape.bytes()).order(ByteOrder.nativeOrder());
    while (memory.hasRemaining()) {
      memory.putLong(value);
    }
    return TypedBuffer.wrap(memory.clear(), shape.type());
  }

  static void check(TypedBuffer buffer, long value) {
    for (long at = 0; at < buffer.bytes(); at += 8) {
      long found = Memory.getLong(buffer.address() + at);
      if (found != value) {
        throw new IllegalStateException("byte %d of key %d is %d".formatted(at, value, found));
      }
    }
  }

  /** Returns the message with which task 0's wait ended. */
  private String suffer(int number, DeviceId here, DeviceId there) {
    if (number == 1) {
      notes().await("waiting");
      notes().leave("victim", here.executor());
      awaitKill();
      return "";
    }
    BufferShape shape = BufferShape.of(DataType.FLOAT32, 1000);
    try (ReceivedBuffer never =
        WeftTransfers.transfers()
            .receive(here, List.of(shape), List.of(there), new long[] {999})
            .get(0)) {
      notes().leave("waiting", here.executor());
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

  /** Number of arrays that each task receives. */
  public static int arraysToEach() {
    return ROUNDS * (int) IntStream.range(0, ARRAYS).filter(i -> i % 2 == 0).count();
  }
}
