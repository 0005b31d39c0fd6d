package io.weft.spark.feed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.arithmetic.Float16;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.feed.DeviceShard.ExchangedBatch;
import io.weft.spark.feed.arrow.TensorColumn;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.spark.runtime.WeftMetrics;
import io.weft.tensor.Tensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Dumps the batch of a rank at one step: {@code spark.weft.debug.dumpStep}. Steps are counted
 * through all epochs of the feed, even if this attempt reads only some of them. A write failure is
 * logged and does not fail the rank. For its task's thread.
 */
final class StepDump implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(StepDump.class);
  private static final String FOLDER = "weft-dump";

  private final FeedShard shard;
  private final FeedSpec.DumpAt at;
  private final String application = SparkEnv.get().conf().getAppId();
  private long taken;
  private long last = -1;
  private boolean reached;
  private Throwable failure;

  StepDump(FeedShard shard) {
    this.shard = shard;
    this.at = shard.spec().dumpAt();
  }

  /**
   * Records that the rank takes a batch.
   *
   * @param place of the batch in the epoch, from 0
   */
  void step(int epoch, int place, FeedShard.ShardChunk batch) {
    step(epoch, place, () -> described(batch));
  }

  /**
   * Records that the rank takes a batch on a GPU; its values are not read.
   *
   * @param place of the batch in the epoch, from 0
   */
  void stepOnDevice(int epoch, int place, ExchangedBatch batch) {
    step(epoch, place, () -> Map.of("rows", batch.rows(), "onGpu", true));
  }

  private void step(int epoch, int place, Supplier<Object> batch) {
    taken++;
    last = (long) epoch * shard.steps() + place;
    if (last == at.step() && !reached) {
      reached = true;
      Map<String, Object> dump = header();
      dump.put("epoch", epoch);
      dump.put("plan", plan());
      dump.put("transfers", transfers());
      dump.put("batch", batch.get());
      write(dump);
    }
  }

  private Map<String, Object> header() {
    Map<String, Object> dump = new LinkedHashMap<>();
    dump.put("application", application);
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

  /** Describes pieces, for example "map 3, partition 1, chunk 0, rows 0 to 255". */
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

  /** The counters of this executor's exchange, of all its tasks. */
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

  private Path file() {
    return Path.of(at.folder().isEmpty() ? FOLDER : at.folder())
        .toAbsolutePath()
        .resolve("%s-feed-%d-rank-%d.json".formatted(application, shard.feed(), shard.rank()));
  }

  /** An earlier attempt may have reached the step, and this one may have started after it. */
  private boolean isWritten() {
    try {
      if (!Files.exists(file())) {
        return false;
      }
      JsonNode written = new ObjectMapper().readTree(file().toFile());
      return written.at("/reached").asBoolean()
          && written.at("/application").asText().equals(application)
          && written.at("/step").asInt(-1) == at.step();
    } catch (IOException e) {
      LOG.debug("{} is overwritten", file(), e);
      return false;
    }
  }

  /**
   * Writes the file atomically: earlier attempts may have written it, and it may be open in a
   * reader.
   */
  private void write(Map<String, Object> dump) {
    Path file = file();
    try {
      Files.createDirectories(file.getParent());
      Path draft = file.resolveSibling(file.getFileName() + "." + UUID.randomUUID() + ".part");
      try {
        new ObjectMapper().writerWithDefaultPrettyPrinter().writeValue(draft.toFile(), dump);
        Files.move(draft, file, StandardCopyOption.ATOMIC_MOVE);
      } finally {
        Files.deleteIfExists(draft);
      }
      LOG.info("Rank {} wrote step {} to {}", shard.rank(), at.step(), file);
    } catch (IOException e) {
      LOG.warn("Rank {} could not write step {} to {}", shard.rank(), at.step(), file, e);
    }
  }

  /** Records that the rank stops because of a failure. */
  void failed(Throwable cause) {
    failure = cause;
  }

  /** Records that the rank has taken its last step. */
  @Override
  public void close() {
    if (at.step() < 0 || reached) {
      return;
    }
    String end = taken + " batches" + (taken == 0 ? "" : ", the last of them number " + last);
    String why =
        failure == null
            ? "was not reached: the rank took " + end
            : "was not reached: the rank failed after " + end + ": " + failure;
    LOG.warn("Step {} of rank {} (spark.weft.debug.dumpStep) {}", at.step(), shard.rank(), why);
    if (isWritten()) {
      return;
    }
    Map<String, Object> dump = header();
    dump.put("taken", taken);
    dump.put("last", last);
    if (failure != null) {
      dump.put("failed", failure.toString());
    }
    write(dump);
  }

  /**
   * Statistics of the values of a tensor.
   *
   * @param min of the finite values, NaN if there is none
   * @param max of the finite values, NaN if there is none
   * @param mean of the finite values, in double arithmetic; NaN if there is none
   * @param zeros of either sign
   * @param nans values that are not a number
   * @param infinities of either sign
   */
  record TensorStatistics(
      double min, double max, double mean, long zeros, long nans, long infinities) {
    /** Computes the statistics of a tensor of up to 2 GiB. */
    static TensorStatistics of(Tensor tensor) {
      ByteBuffer bytes = tensor.byteBuffer();
      double min = Double.POSITIVE_INFINITY;
      double max = Double.NEGATIVE_INFINITY;
      double sum = 0;
      long zeros = 0;
      long nans = 0;
      long infinities = 0;
      int count = (int) tensor.type().elements();
      for (int i = 0; i < count; i++) {
        double value = value(bytes, tensor, i);
        if (Double.isNaN(value)) {
          nans++;
        } else if (Double.isInfinite(value)) {
          infinities++;
        } else {
          min = Math.min(min, value);
          max = Math.max(max, value);
          sum += value;
          zeros += value == 0 ? 1 : 0;
        }
      }
      long finite = count - nans - infinities;
      return finite == 0
          ? new TensorStatistics(Double.NaN, Double.NaN, Double.NaN, zeros, nans, infinities)
          : new TensorStatistics(min, max, sum / finite, zeros, nans, infinities);
    }

    private static double value(ByteBuffer bytes, Tensor tensor, int i) {
      return switch (tensor.type().dtype()) {
        case INT8 -> bytes.get(i);
        case INT16 -> bytes.getShort(2 * i);
        case INT32 -> bytes.getInt(4 * i);
        case INT64 -> (double) bytes.getLong(8 * i);
        case FLOAT16 -> Float16.toFloat(bytes.getShort(2 * i));
        case BFLOAT16 -> BFloat16.toFloat(bytes.getShort(2 * i));
        case FLOAT32 -> bytes.getFloat(4 * i);
        case FLOAT64 -> bytes.getDouble(8 * i);
      };
    }
  }
}
