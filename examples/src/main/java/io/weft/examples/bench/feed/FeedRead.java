package io.weft.examples.bench.feed;

import io.weft.collectives.buffer.DataType;
import io.weft.examples.jobs.WriteInput;
import io.weft.examples.side.SideTask;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.train.BarrierRanks;
import io.weft.examples.train.ParquetRows;
import io.weft.spark.feed.FeedBatch;
import io.weft.spark.feed.FeedBatches;
import io.weft.spark.feed.FeedTask;
import io.weft.spark.feed.LastBatch;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.feed.WeftTensors;
import io.weft.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Hands a table of tensors to ranks, each of which reads every element that it gets once.
 *
 * @param input folder of Parquet that the tensors are read from
 * @param files where the Parquet files for the ranks go; deleted afterwards
 */
record FeedRead(FeedSide side, String input, String files, int ranks, int batchRows)
    implements SideTask<FeedResult> {
  private static final String TENSOR = "tensor";
  private static final String ENABLED = "spark.weft.enabled";

  @Override
  public FeedResult run(SparkSession session) throws IOException {
    boolean feed = side == FeedSide.FEED;
    session.conf().set(ENABLED, Boolean.toString(feed));
    long start = System.nanoTime();
    Dataset<Row> tensors =
        session
            .read()
            .parquet(input)
            .select(WeftTensors.column(TENSOR, DataType.FLOAT32, WriteInput.TENSOR_FLOATS));
    List<FeedResult> results = feed ? throughFeed(tensors) : throughFiles(session, tensors);
    double seconds = (System.nanoTime() - start) / 1e9;
    session.conf().set(ENABLED, "true");
    WorkFolder.delete(Path.of(files));
    return results.stream().reduce(FeedResult.NONE, FeedResult::plus).in(seconds);
  }

  private List<FeedResult> throughFeed(Dataset<Row> tensors) {
    return WeftFeed.shards(tensors, ranks)
        .batchRows(batchRows)
        .lastBatch(LastBatch.KEEP)
        .train(FeedRead::readFeed);
  }

  private static FeedResult readFeed(FeedTask task) {
    FeedResult result = FeedResult.NONE;
    try (FeedBatches batches = task.batches(0)) {
      while (batches.hasNext()) {
        FeedBatch batch = batches.next();
        Tensor tensors = batch.tensor(TENSOR);
        long gathered = batch.inPlace() ? 0 : tensors.type().bytes();
        result = result.plus(FeedResult.of(tensors)).plus(FeedResult.copied(gathered, 0));
      }
    }
    return result;
  }

  private List<FeedResult> throughFiles(SparkSession session, Dataset<Row> tensors) {
    tensors.repartition(ranks).write().options(side.options()).parquet(files);
    String folder = files;
    return BarrierRanks.run(
        session.sparkContext(),
        ranks,
        communicator -> readFile(ParquetRows.files(Path.of(folder)).get(communicator.rank())));
  }

  private static FeedResult readFile(Path file) throws IOException {
    try (ParquetRows rows = new ParquetRows(WriteInput.TENSOR_FLOATS)) {
      rows.read(file, TENSOR, null);
      FeedResult result = FeedResult.copied(rows.copiedBytes(), Files.size(file));
      for (Tensor block : rows.blocks()) {
        result = result.plus(FeedResult.of(block));
      }
      return result;
    }
  }
}
