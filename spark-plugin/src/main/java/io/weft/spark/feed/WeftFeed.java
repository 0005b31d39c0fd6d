package io.weft.spark.feed;

import io.weft.spark.config.WeftSettings;
import io.weft.spark.feed.arrow.ShardFile;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Feeds a data set into training: it exchanges the rows onto ranks, which read them in batches of
 * exactly the requested size. Immutable; each setting returns a new feed. Used on the driver, with
 * the plugin enabled.
 *
 * <pre>{@code
 * List<Double> losses =
 *     WeftFeed.shards(features, 2).batchRows(256).shuffled(17).train(task -> {
 *       double loss = 0;
 *       for (int epoch = 0; epoch < 3; epoch++) {
 *         try (FeedBatches batches = task.batches(epoch)) {
 *           while (batches.hasNext()) {
 *             FeedBatch batch = batches.next();
 *             loss = step(batch.tensor("x"), batch.tensor("y"), task.communicator());
 *           }
 *         }
 *       }
 *       return loss;
 *     });
 * }</pre>
 */
public final class WeftFeed {
  private static final int DEFAULT_BATCH_ROWS = 256;

  private final Dataset<Row> data;
  private final int ranks;
  private final int batchRows;
  private final List<String> keys;
  private final Long seed;
  private final LastBatch lastBatch;
  private final boolean onGpus;

  private WeftFeed(
      Dataset<Row> data,
      int ranks,
      int batchRows,
      List<String> keys,
      Long seed,
      LastBatch lastBatch,
      boolean onGpus) {
    this.data = data;
    this.ranks = ranks;
    this.batchRows = batchRows;
    this.keys = keys;
    this.seed = seed;
    this.lastBatch = lastBatch;
    this.onGpus = onGpus;
  }

  /**
   * Creates a feed that deals rows evenly, in batches of 256, in the order of the data, and drops
   * incomplete batches.
   *
   * @param ranks tasks to train in, at least 1; all run at once, each on a core
   */
  public static WeftFeed shards(Dataset<Row> data, int ranks) {
    if (ranks < 1) {
      throw new IllegalArgumentException("a feed needs at least one rank, not " + ranks);
    }
    return new WeftFeed(data, ranks, DEFAULT_BATCH_ROWS, List.of(), null, LastBatch.DROP, false);
  }

  /** Sets the number of rows of a full batch, 1 or more. */
  public WeftFeed batchRows(int rows) {
    if (rows < 1) {
      throw new IllegalArgumentException("a batch needs at least one row, not " + rows);
    }
    return new WeftFeed(data, ranks, rows, keys, seed, lastBatch, onGpus);
  }

  /**
   * Sends rows whose key columns are equal to the same rank, instead of dealing them evenly. The
   * number of rows per rank then depends on the keys; {@link LastBatch} says what happens to the
   * surplus.
   */
  public WeftFeed by(String... keyColumns) {
    return new WeftFeed(data, ranks, batchRows, List.of(keyColumns), seed, lastBatch, onGpus);
  }

  /**
   * Shuffles the batches: each epoch has another order, which is a function of the seed, the epoch
   * and the data.
   */
  public WeftFeed shuffled(long shuffleSeed) {
    return new WeftFeed(data, ranks, batchRows, keys, shuffleSeed, lastBatch, onGpus);
  }

  /** Sets the treatment of rows that fill no batch; the default is {@link LastBatch#DROP}. */
  public WeftFeed lastBatch(LastBatch choice) {
    return new WeftFeed(data, ranks, batchRows, keys, seed, choice, onGpus);
  }

  /**
   * Makes {@link #train} and {@link #exportToGpus} exchange the rows between the GPUs. Map tasks
   * upload the rows and split them on the GPU, ranks fetch them from GPU to GPU, and {@link
   * FeedTask#gpuBatches} reads them where they arrive. Ranks then have no {@link FeedTask#batches},
   * and only columns that are numbers or tensors of fixed shape. If this is not possible, for
   * example without GPUs, rows move from host to host, and the driver's log gives the reason.
   *
   * <p>Batches of a query that ends on the GPU, see {@link io.weft.spark.sql.WeftGpu}, are not
   * uploaded: map tasks split them there.
   */
  public WeftFeed onGpus() {
    return new WeftFeed(data, ranks, batchRows, keys, seed, lastBatch, true);
  }

  /**
   * Exchanges the rows, then runs the function on every rank in one barrier stage. Blocks until all
   * have ended. The exchanged rows are freed before it returns.
   *
   * @return the results, in the order of the ranks
   * @throws RankFailedException if the function of a rank itself failed in the last attempt
   */
  public <T> List<T> train(FeedFunction<T> function) {
    try (FeedExchange exchange = exchange(onGpus)) {
      return exchange.onRanks(
          (shard, context) -> {
            try (RankTask task = new RankTask(shard, context)) {
              return task.run(function);
            }
          });
    }
  }

  /**
   * Exchanges the rows and writes each rank's batches, in the order of epoch 0, to an Arrow file in
   * shared memory for other processes. Each batch is copied once; readers map it in place. Blocks
   * until all are written.
   *
   * @return the export, which keeps the files until the caller closes it
   * @throws IllegalArgumentException naming a column that has no Arrow form
   */
  public FeedExport export() {
    ShardFile.requireArrowForm(data.schema());
    try (FeedExchange exchange = exchange(false)) {
      return exchange.export();
    }
  }

  /**
   * Exchanges the rows and puts each rank's batches, in the order of epoch 0, on the GPU of the
   * executor where its task runs: numbers, and tensors of fixed shape. Other processes of that host
   * map them by CUDA IPC. Blocks until all are there. All of a rank's batches have to fit into the
   * setting {@code spark.weft.gpu.memory}. With {@link #onGpus}, and after a query that ends on the
   * GPU, the rows are exchanged between GPUs, which need memory for a rank's exchanged rows too.
   *
   * @return the export, which keeps the memory until the caller closes it
   * @throws IllegalArgumentException if no column can be on a GPU
   */
  public GpuFeedExport exportToGpus() {
    GpuBatchLayout unused = GpuBatchLayout.of(spec());
    try (FeedExchange exchange = exchange(onGpus || FeedInput.endsOnDevices(data))) {
      return exchange.exportToGpus();
    }
  }

  private FeedExchange exchange(boolean betweenGpus) {
    return FeedExchange.run(data, betweenGpus ? spec().betweenGpus() : spec(), keys);
  }

  private FeedSpec spec() {
    SQLConf conf =
        ((org.apache.spark.sql.classic.Dataset<Row>) data).sparkSession().sessionState().conf();
    FeedSpec.DumpAt dumpAt =
        new FeedSpec.DumpAt(
            WeftSettings.DEBUG_DUMP_STEP.get(conf), WeftSettings.DEBUG_DUMP_FOLDER.get(conf));
    return new FeedSpec(data.schema(), ranks, batchRows, !keys.isEmpty(), seed, lastBatch, dumpAt);
  }
}
