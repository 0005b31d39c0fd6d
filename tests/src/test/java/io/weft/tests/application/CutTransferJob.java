package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.spark.transfers.WeftTransfers;
import io.weft.transfers.BufferShape;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.ReceivedBuffer;
import io.weft.transfers.SourceBuffer;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Two tasks of an ordinary stage, one in each of two executors, that exchange arrays both ways
 * until that fails.
 *
 * @param folder where tasks leave notes: "under-way-0" and "under-way-1" after some rounds
 */
public record CutTransferJob(String folder) implements Serializable {
  private static final BufferShape SHAPE = BufferShape.of(DataType.INT64, 100_000);

  /** Limit of the rounds, in case no failure ends them. */
  private static final int MAX_ROUNDS = 10_000;

  /**
   * The end of a task's last round.
   *
   * @param failure empty if the other task's transfer failed
   * @param millis from the request of its transfers to the end
   */
  public record Answer(int task, String executorId, int round, String failure, long millis)
      implements Serializable {}

  /** Runs both tasks; returns their answers by number. */
  public List<Answer> run(SparkContext context) {
    return new JavaSparkContext(context).parallelize(List.of(0, 1), 2).map(this::task).collect();
  }

  private Answer task(int number) {
    DeviceId here = WeftTransfers.device();
    Notes notes = new Notes(folder);
    notes.leave("executor-" + number, here.executor());
    DeviceId there = new DeviceId(notes.await("executor-" + (1 - number)), 0);
    TypedBuffer data =
        TypedBuffer.wrap(ByteBuffer.allocateDirect((int) SHAPE.bytes()), SHAPE.type());
    Answer last = null;
    boolean bothWell = true;
    for (int round = 0; bothWell && round < MAX_ROUNDS; round++) {
      last = round(number, data, here, there, round);
      notes.leave("round-" + number + "-" + round, last.failure());
      bothWell = (last.failure() + notes.await("round-" + (1 - number) + "-" + round)).isEmpty();
    }
    return last;
  }

  private static Answer round(
      int number, TypedBuffer data, DeviceId here, DeviceId there, int round) {
    long start = System.nanoTime();
    String failure = "";
    try {
      exchange(data, here, there, round);
    } catch (EventFailedException e) {
      failure = String.valueOf(e.getCause().getMessage());
    }
    long millis = (System.nanoTime() - start) / 1_000_000;
    return new Answer(number, here.executor(), round, failure, millis);
  }

  private static void exchange(TypedBuffer data, DeviceId here, DeviceId there, long key) {
    DeviceTransfers transfers = WeftTransfers.transfers();
    long[] keys = {key};
    try (ReceivedBuffer received =
        transfers.receive(here, List.of(SHAPE), List.of(there), keys).get(0)) {
      List<Event> sent = transfers.send(List.of(SourceBuffer.of(here, data)), List.of(there), keys);
      sent.get(0).await(Deadline.after(Notes.TIMEOUT));
      received.event().await(Deadline.after(Notes.TIMEOUT));
    }
  }
}
