package io.weft.spark.feed;

import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.arrow.ArrowMemory;
import io.weft.spark.feed.arrow.TensorColumn;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The batches of one rank, all readable until it is closed. Owns the reader of the chunks, and the
 * memory of batches that were combined. For its task's thread, which closes it at the end of the
 * task.
 */
final class FeedShard implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(FeedShard.class);

  private final int feed;
  private final FeedSpec spec;
  private final FeedPlan plan;
  private final int rank;
  private final ChunkReader reader;
  private final SharedArena arena;
  private final List<ShardChunk> chunks = new ArrayList<>();
  private final List<Extent> gathered = new ArrayList<>();
  private final Map<String, TensorColumn> tensors = new HashMap<>();
  private final ArrowMemory arrow = new ArrowMemory();

  /** The rows on a GPU; null if the rows are on the host. */
  private final DeviceShard onDevice;

  private volatile boolean closed;

  /** Counts its own use of the memory, and one for each export that has not been returned. */
  private final AtomicInteger uses = new AtomicInteger(1);

  /**
   * One batch's chunk.
   *
   * @param inPlace whether it is where its map task wrote it or where the network delivered it
   */
  record ShardChunk(ChunkView view, boolean inPlace) {}

  FeedShard(
      int feed, FeedSpec spec, FeedPlan plan, int rank, ChunkReader reader, SharedArena arena) {
    this(feed, spec, plan, rank, reader, arena, null);
  }

  private FeedShard(
      int feed,
      FeedSpec spec,
      FeedPlan plan,
      int rank,
      ChunkReader reader,
      SharedArena arena,
      DeviceShard onDevice) {
    this.feed = feed;
    this.spec = spec;
    this.plan = plan;
    this.rank = rank;
    this.reader = reader;
    this.arena = arena;
    this.onDevice = onDevice;
    TensorCheck.columns(spec.schema()).forEach(column -> tensors.put(column.name(), column));
  }

  /** Creates a shard whose rows are all on a GPU. */
  static FeedShard onDevice(
      int feed, FeedSpec spec, FeedPlan plan, int rank, DeviceShard onDevice) {
    return new FeedShard(feed, spec, plan, rank, null, null, onDevice);
  }

  /** Returns the rows on a GPU; null if the rows are on the host. */
  DeviceShard onDevice() {
    return onDevice;
  }

  /** Adds the next batch, a chunk that the reader owns. */
  void add(ChunkView chunk) {
    chunks.add(new ShardChunk(chunk, true));
    FeedCounters.add(FeedCounter.BATCHES_IN_PLACE, 1);
  }

  /** Adds the next batch, which was combined in memory that the shard takes over. */
  void add(Extent chunk) {
    gathered.add(chunk);
    ChunkView view =
        ChunkView.of(spec.schema(), chunk.address(), chunk.length(), "a batch of remainders");
    chunks.add(new ShardChunk(view, false));
    FeedCounters.add(FeedCounter.BATCHES_GATHERED, 1);
    FeedCounters.add(FeedCounter.ROWS_GATHERED, view.rows());
    FeedCounters.add(FeedCounter.BYTES_GATHERED, view.length());
  }

  /** Number of the feed in its application. */
  int feed() {
    return feed;
  }

  FeedSpec spec() {
    return spec;
  }

  FeedPlan plan() {
    return plan;
  }

  int rank() {
    return rank;
  }

  int steps() {
    return plan.steps();
  }

  /** Returns the batches in the order of an epoch. */
  List<ShardChunk> epoch(int epoch) {
    return plan.order(rank, epoch).stream().map(chunks::get).toList();
  }

  /**
   * Finds a column that can be viewed as a tensor.
   *
   * @throws IllegalArgumentException if there is no such column
   */
  TensorColumn tensor(String column) {
    TensorColumn found = tensors.get(column);
    if (found == null) {
      throw new IllegalArgumentException(noTensor(column));
    }
    return found;
  }

  private String noTensor(String column) {
    String[] names = spec.schema().fieldNames();
    int ordinal = Arrays.asList(names).indexOf(column);
    return ordinal < 0
        ? "the feed has no column %s; its columns are %s".formatted(column, Arrays.toString(names))
        : "column %s of type %s is no number and has no tensor type: see WeftTensors"
            .formatted(column, spec.schema().fields()[ordinal].dataType().simpleString());
  }

  /** Returns whether the memory of the batches has been freed. */
  boolean isClosed() {
    return closed;
  }

  ArrowMemory arrow() {
    return arrow;
  }

  /** Records that foreign code has addresses in the batches, until {@link #takeBack}. */
  void lend() {
    uses.incrementAndGet();
  }

  /**
   * Ends a loan. Any thread may call it, even after the end of the task; the last one frees the
   * memory.
   */
  void takeBack() {
    if (uses.decrementAndGet() == 0) {
      release();
    }
  }

  /** Frees all memory that is not lent. Idempotent. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    arrow.close();
    if (onDevice != null) {
      onDevice.close();
      return;
    }
    int lent = uses.get() - 1;
    if (lent > 0) {
      LOG.warn(
          "Rank {} of feed {} ends, and {} tensors that it exported were not returned: the memory"
              + " of all its batches is kept until they are",
          rank,
          feed,
          lent);
    }
    takeBack();
  }

  private void release() {
    gathered.forEach(arena::free);
    reader.close();
  }
}
