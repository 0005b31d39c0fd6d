package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.spark.feed.FeedBatch;
import io.weft.spark.feed.FeedBatches;
import io.weft.spark.feed.FeedTask;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.feed.WeftTensors;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * A feed into two ranks that read every row twice and add up the ids together.
 *
 * @param folder where tasks leave notes for the test
 * @param victim whether rank 1 of the first attempt writes {@code victim} with its executor's id
 *     and waits to be killed
 */
public record FeedJob(String folder, boolean victim) implements Serializable {
  /** Rows of the data set. */
  public static final int ROWS = 4000;

  /** Rows of a batch. */
  public static final int BATCH_ROWS = 50;

  private static final int WIDTH = 32;
  private static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(3);

  /**
   * The result of a rank.
   *
   * @param ids of its rows
   * @param copied batches that are not in a mapped segment, or not where a map task wrote them
   * @param sum of all ranks' ids
   * @param refusal the error of an export by Arrow's C data interface
   */
  public record Answer(String executorId, ArrayList<Long> ids, int copied, long sum, String refusal)
      implements Serializable {}

  /** The feed, of four map tasks whose rows are whole batches. */
  public static WeftFeed feed(SparkSession session) {
    return WeftFeed.shards(rows(session), 2).batchRows(BATCH_ROWS);
  }

  /** The data set of {@link #feed}. */
  static Dataset<Row> rows(SparkSession session) {
    return session
        .range(0, ROWS, 1, 4)
        .select(
            functions.col("id"),
            WeftTensors.column(
                functions.expr("transform(sequence(1, 32), i -> cast(id + i as float))"),
                "x",
                DataType.FLOAT32,
                WIDTH));
  }

  /** Runs it; returns the answers in the order of the ranks. */
  public List<Answer> run(SparkSession session) {
    return feed(session).shuffled(1).train(this::answer);
  }

  private Answer answer(FeedTask task) throws IOException {
    BarrierTaskContext context = BarrierTaskContext.get();
    if (victim && context.stageAttemptNumber() == 0 && task.rank() == 1) {
      waitForTheEnd(context);
    }
    ArrayList<Long> ids = new ArrayList<>();
    int copied = 0;
    long sum = 0;
    String refusal = "";
    for (int epoch = 0; epoch < 2; epoch++) {
      try (FeedBatches batches = task.batches(epoch)) {
        while (batches.hasNext()) {
          FeedBatch batch = batches.next();
          List<Long> seen = ids(batch);
          sum += reduced(task, seen.stream().mapToLong(Long::longValue).sum());
          if (epoch == 0) {
            ids.addAll(seen);
          }
          copied += batch.inPlace() && isMapped(batch.tensor("x").address()) ? 0 : 1;
          refusal = refusal(batch);
        }
      }
    }
    return new Answer(SparkEnv.get().executorId(), ids, copied, sum, refusal);
  }

  private static List<Long> ids(FeedBatch batch) {
    ByteBuffer ids = batch.byteBuffer("id");
    ByteBuffer x = batch.byteBuffer("x");
    List<Long> seen = new ArrayList<>();
    for (int row = 0; row < batch.rows(); row++) {
      long id = ids.getLong(8 * row);
      for (int i = 0; i < WIDTH; i++) {
        if (x.getFloat(4 * (WIDTH * row + i)) != id + i + 1) {
          throw new IllegalStateException("row " + id + " differs at " + i);
        }
      }
      seen.add(id);
    }
    return seen;
  }

  private static long reduced(FeedTask task, long mine) {
    try (Tensor sum = Tensor.allocate(TensorType.of(DataType.INT64, 1))) {
      sum.byteBuffer().putLong(0, mine);
      task.communicator().allReduce(sum.buffer(), ReduceOp.SUM);
      return sum.byteBuffer().getLong(0);
    }
  }

  private static String refusal(FeedBatch batch) {
    try {
      batch.exportTo(0, 0);
      return "";
    } catch (IllegalStateException e) {
      return e.getMessage();
    }
  }

  /** According to the kernel. */
  private static boolean isMapped(long address) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
      String[] ends = line.split("[- ]", 3);
      if (address >= Long.parseUnsignedLong(ends[0], 16)
          && address < Long.parseUnsignedLong(ends[1], 16)) {
        return line.contains("/weft-");
      }
    }
    return false;
  }

  private void waitForTheEnd(BarrierTaskContext context) throws IOException {
    Path draft = Files.createTempFile(Path.of(folder), "draft-", ".txt");
    Files.writeString(draft, SparkEnv.get().executorId());
    Files.move(draft, Path.of(folder, "victim"));
    long deadline = System.nanoTime() + LIMIT_NANOS;
    while (!context.isInterrupted() && System.nanoTime() < deadline) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
    }
  }
}
