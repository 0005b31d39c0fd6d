package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.spark.transfers.WeftTransfers;
import io.weft.transfers.BufferShape;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.ReceivedBuffer;
import io.weft.transfers.SourceBuffer;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Two tasks of an ordinary stage, one in each of two executors, that exchange an array each. The
 * first attempt of task 0 fails and leaves its transfers open. Task 1 starts its own for the second
 * attempt.
 *
 * @param folder where tasks leave notes
 * @param sameKeys whether the second attempt uses the keys of the first one
 */
public record RetriedTransferJob(String folder, boolean sameKeys) implements Serializable {
  private static final BufferShape SHAPE = BufferShape.of(DataType.INT64, 10_000);

  /** Runs both tasks; returns the attempt that succeeded of each. */
  public List<Integer> run(SparkContext context) {
    return new JavaSparkContext(context).parallelize(List.of(0, 1), 2).map(this::task).collect();
  }

  private int task(int number) {
    int attempt = TaskContext.get().attemptNumber();
    Notes notes = new Notes(folder);
    DeviceId here = WeftTransfers.device();
    notes.leave("executor-" + number + "-" + attempt, here.executor());
    if (number == 0) {
      failsOnce(notes, attempt, here);
    } else {
      DeviceId there = new DeviceId(notes.await("executor-0-1"), 0);
      notes.await("waiting");
      Exchange.start(here, there, key(1) + 1, key(1)).finish();
    }
    return attempt;
  }

  private void failsOnce(Notes notes, int attempt, DeviceId here) {
    DeviceId there = new DeviceId(notes.await("executor-1-0"), 0);
    Exchange exchange = Exchange.start(here, there, key(attempt), key(attempt) + 1);
    if (attempt == 0) {
      throw new IllegalStateException("the first attempt fails");
    }
    notes.leave("waiting", here.executor());
    exchange.finish();
  }

  private long key(int attempt) {
    return sameKeys ? 1 : 1 + 10L * attempt;
  }

  /** One array each way. Its elements are the key. */
  private record Exchange(ReceivedBuffer received, long key, Event sent) {
    static Exchange start(DeviceId here, DeviceId there, long receivedKey, long sentKey) {
      DeviceTransfers transfers = WeftTransfers.transfers();
      ReceivedBuffer received =
          transfers.receive(here, List.of(SHAPE), List.of(there), new long[] {receivedKey}).get(0);
      SourceBuffer source = SourceBuffer.of(here, TransferJob.filled(SHAPE, sentKey));
      Event sent = transfers.send(List.of(source), List.of(there), new long[] {sentKey}).get(0);
      return new Exchange(received, receivedKey, sent);
    }

    void finish() {
      received.event().await(Deadline.after(Notes.TIMEOUT));
      TransferJob.check(received.buffer(), key);
      sent.await(Deadline.after(Notes.TIMEOUT));
      received.close();
    }
  }
}
