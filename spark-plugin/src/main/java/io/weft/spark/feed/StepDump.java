package io.weft.spark.feed;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.metrics.ExchangeCounter;
import io.weft.spark.executor.WeftExecutor;
import io.weft.spark.metrics.WeftMetrics;
import io.weft.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes down what a rank sees at one step: {@code spark.weft.debug.dumpStep}. A failure to write
 * is logged and does not fail the rank. For its task's thread.
 */
final class StepDump implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(StepDump.class);
  private static final String FOLDER = "weft-dump";

  private final FeedShard shard;
  private final FeedSpec.DumpAt at;
  private long steps;
  private boolean reached;
  private Throwable failure;

  StepDump(FeedShard shard) {
    this.shard = shard;
    this.at = shard.spec().dumpAt();
  }

  /** The rank takes another step. */
  void step(int epoch, FeedShard.ShardChunk batch) {
    if (steps++ == at.step()) {
      reached = true;
      Map<String, Object> dump = header();
      dump.put("epoch", epoch);
      dump.put("plan", plan());
      dump.put("transfers", transfers());
      dump.put("batch", described(batch));
      write(dump);
    }
  }

  /** The rank takes another step, with a batch that lies on a GPU, which is not looked at. */
  void stepOnDevice(int epoch, DeviceBatch batch) {
    if (steps++ == at.step()) {
      reached = true;
      Map<String, Object> dump = header();
      dump.put("epoch", epoch);
      dump.put("plan", plan());
      dump.put("transfers", transfers());
      dump.put("batch", Map.of("rows", batch.rows(), "onGpu", true));
      write(dump);
    }
  }

  private Map<String, Object> header() {
    Map<String, Object> dump = new LinkedHashMap<>();
    dump.put("rank", shard.rank());
    dump.put("ranks", shard.spec().ranks());
    dump.put("step", at.step());
    dump.put("reached", reached);
    return dump;
  }

  private Map<String, Object> plan() {
    Map<String, Object> plan = new LinkedHashMap<>();
    plan.put("steps", shard.plan().steps());
    plan.put("batchRows", shard.spec().batchRows());
    plan.put("byKey", shard.spec().byKey());
    plan.put("seed", shard.spec().seed().orElse(null));
    plan.put("lastBatch", shard.spec().lastBatch());
    plan.put("writtenRows", shard.plan().writtenRows());
    plan.put("droppedRows", shard.plan().droppedRows());
    plan.put("batches", shard.plan().rank(shard.rank()).stream().map(this::pieces).toList());
    return plan;
  }

  /** As in "map 3, partition 1, chunk 0, rows 0 to 255". */
  private List<String> pieces(FeedPlan.Batch batch) {
    return batch.pieces().stream()
        .map(
            piece ->
                "map %d, partition %d, chunk %d, rows %d to %d"
                    .formatted(
                        piece.map(),
                        piece.partition(),
                        piece.chunk(),
                        piece.start(),
                        piece.start() + piece.rows() - 1))
        .toList();
  }

  /** What this executor's exchange has counted up to now, of all its tasks. */
  private static Map<String, Object> transfers() {
    Map<String, Object> transfers = new LinkedHashMap<>();
    WeftExecutor.current()
        .ifPresent(
            exchange -> {
              for (ExchangeCounter counter : ExchangeCounter.values()) {
                transfers.put(WeftMetrics.name(counter), exchange.statistics().get(counter));
              }
            });
    return transfers;
  }

  private Map<String, Object> described(FeedShard.ShardChunk batch) {
    Map<String, Object> tensors = new LinkedHashMap<>();
    for (TensorColumn column : TensorCheck.columns(shard.spec().schema())) {
      tensors.put(column.name(), described(column, batch));
    }
    Map<String, Object> described = new LinkedHashMap<>();
    described.put("rows", batch.view().rows());
    described.put("inPlace", batch.inPlace());
    described.put("bytes", batch.view().length());
    described.put("tensors", tensors);
    return described;
  }

  private static Map<String, Object> described(TensorColumn column, FeedShard.ShardChunk batch) {
    Map<String, Object> described = new LinkedHashMap<>();
    described.put("type", column.type());
    try {
      Tensor tensor = column.in(batch.view());
      TensorStatistics statistics = TensorStatistics.of(tensor);
      described.put("shape", tensor.type().shape());
      described.put("address", "0x" + Long.toHexString(tensor.address()));
      described.put("min", statistics.min());
      described.put("max", statistics.max());
      described.put("mean", statistics.mean());
      described.put("zeros", statistics.zeros());
      described.put("nans", statistics.nans());
      described.put("infinities", statistics.infinities());
    } catch (IllegalArgumentException | IllegalStateException e) {
      described.put("none", e.getMessage());
    }
    return described;
  }

  private void write(Map<String, Object> dump) {
    Path folder = Path.of(at.folder().isEmpty() ? FOLDER : at.folder()).toAbsolutePath();
    Path file = folder.resolve("feed-%d-rank-%d.json".formatted(shard.feed(), shard.rank()));
    try {
      Files.createDirectories(folder);
      new ObjectMapper().writerWithDefaultPrettyPrinter().writeValue(file.toFile(), dump);
      LOG.info("Rank {} wrote step {} to {}", shard.rank(), at.step(), file);
    } catch (IOException e) {
      LOG.warn("Rank {} could not write step {} to {}", shard.rank(), at.step(), file, e);
    }
  }

  /** The rank takes no further step, because of this. */
  void failed(Throwable cause) {
    failure = cause;
  }

  /** The rank has taken its last step. */
  @Override
  public void close() {
    if (at.step() < 0 || reached) {
      return;
    }
    String why =
        failure == null
            ? "was not reached: the rank took " + steps + " steps"
            : "was not reached: the rank failed after " + steps + " steps: " + failure;
    LOG.warn("Step {} of rank {} (spark.weft.debug.dumpStep) {}", at.step(), shard.rank(), why);
    Map<String, Object> dump = header();
    dump.put("taken", steps);
    if (failure != null) {
      dump.put("failed", failure.toString());
    }
    write(dump);
  }
}
