package io.weft.examples.bench.feed;

import io.weft.collectives.DataType;
import io.weft.examples.jobs.WriteInput;
import io.weft.examples.side.SideTask;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.train.BarrierRanks;
import io.weft.examples.train.ParquetRows;
import io.weft.memory.Memory;
import io.weft.spark.feed.FeedBatch;
import io.weft.spark.feed.FeedBatches;
import io.weft.spark.feed.FeedTask;
import io.weft.spark.feed.LastBatch;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.feed.WeftTensors;
import io.weft.tensor.Tensor;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Hands a table of tensors to ranks. Each rank reads each element of its tensors once.
 *
 * @param input Parquet folder of the tensors
 * @param files folder of the Parquet files for the ranks; deleted afterwards
 */
public record FeedRead(FeedSide side, String input, String files, int ranks, int batchRows)
    implements SideTask<FeedRead.Result> {
  private static final String TENSOR = "tensor";
  private static final String ENABLED = "spark.weft.enabled";

  @Override
  public Result run(SparkSession session) throws IOException {
    boolean feed = side == FeedSide.FEED;
    session.conf().set(ENABLED, Boolean.toString(feed));
    long start = System.nanoTime();
    Dataset<Row> tensors =
        session
            .read()
            .parquet(input)
            .select(WeftTensors.column(TENSOR, DataType.FLOAT32, WriteInput.TENSOR_FLOATS));
    List<Result> results = feed ? throughFeed(tensors) : throughFiles(session, tensors);
    double seconds = (System.nanoTime() - start) / 1e9;
    session.conf().set(ENABLED, "true");
    WorkFolder.delete(Path.of(files));
    return results.stream().reduce(Result.NONE, Result::plus).in(seconds);
  }

  private List<Result> throughFeed(Dataset<Row> tensors) {
    return WeftFeed.shards(tensors, ranks)
        .batchRows(batchRows)
        .lastBatch(LastBatch.KEEP)
        .train(FeedRead::readFeed);
  }

  private static Result readFeed(FeedTask task) {
    Result result = Result.NONE;
    try (FeedBatches batches = task.batches(0)) {
      while (batches.hasNext()) {
        FeedBatch batch = batches.next();
        Tensor tensors = batch.tensor(TENSOR);
        long gathered = batch.inPlace() ? 0 : tensors.type().bytes();
        result = result.plus(Result.of(tensors)).plus(Result.copied(gathered, 0));
      }
    }
    return result;
  }

  private List<Result> throughFiles(SparkSession session, Dataset<Row> tensors) {
    tensors.repartition(ranks).write().options(side.options()).parquet(files);
    String folder = files;
    return BarrierRanks.run(
        session.sparkContext(),
        ranks,
        communicator -> readFile(ParquetRows.files(Path.of(folder)).get(communicator.rank())));
  }

  private static Result readFile(Path file) throws IOException {
    try (ParquetRows rows = new ParquetRows(WriteInput.TENSOR_FLOATS)) {
      rows.read(file, TENSOR, null);
      Result result = Result.copied(rows.copiedBytes(), Files.size(file));
      for (Tensor block : rows.blocks()) {
        result = result.plus(Result.of(block));
      }
      return result;
    }
  }

  /**
   * The result of one hand-off.
   *
   * @param seconds from the scan of the input to the last element read; 0 for a part
   * @param cpuSeconds of all threads of the executor processes; 0 for a part
   * @param rows number of tensors
   * @param sum of all elements' bits, the same in any order
   * @param copiedBytes after the exchange, or after reading the files, to form the tensors
   * @param fileBytes of the files in between
   */
  public record Result(
      double seconds, double cpuSeconds, long rows, long sum, long copiedBytes, long fileBytes)
      implements Serializable {
    static final Result NONE = new Result(0, 0, 0, 0, 0, 0);

    /** Reads tensors in place. */
    static Result of(Tensor tensors) {
      long sum = 0;
      long end = tensors.address() + tensors.type().bytes();
      for (long at = tensors.address(); at < end; at += Integer.BYTES) {
        sum += Memory.getInt(at);
      }
      return new Result(0, 0, tensors.type().dimension(0), sum, 0, 0);
    }

    static Result copied(long copiedBytes, long fileBytes) {
      return new Result(0, 0, 0, 0, copiedBytes, fileBytes);
    }

    Result plus(Result other) {
      return new Result(
          seconds + other.seconds,
          cpuSeconds + other.cpuSeconds,
          rows + other.rows,
          sum + other.sum,
          copiedBytes + other.copiedBytes,
          fileBytes + other.fileBytes);
    }

    Result in(double total) {
      return new Result(total, cpuSeconds, rows, sum, copiedBytes, fileBytes);
    }

    Result onProcessors(double total) {
      return new Result(seconds, total, rows, sum, copiedBytes, fileBytes);
    }
  }
}
