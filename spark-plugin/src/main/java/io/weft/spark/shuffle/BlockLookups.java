package io.weft.spark.shuffle;

import io.weft.shuffle.fetch.BlockRequest;
import io.weft.spark.shuffle.ShuffleBlocks.ReadRange;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * Where the blocks are that Spark names by their ids alone. A reader asks for one block after the
 * other, but each look-up in Spark's tracker lists all map outputs. So the last ones are kept, as
 * long as the tracker's version stays the same.
 *
 * <p>Thread-safe. Not locked while Spark looks up.
 */
final class BlockLookups {
  /** About as many as tasks of an executor that read at the same time. */
  private static final int MAX_RANGES = 16;

  private final Function<ReadRange, ShuffleBlocks> tracker;
  private final LongSupplier version;

  /** By use, the latest last. Guarded by itself. */
  private final Map<ReadRange, Answer> answers = new LinkedHashMap<>(MAX_RANGES, 0.75f, true);

  private record Answer(long version, Map<Long, BlockRequest> byMap, ShuffleBlocks blocks) {}

  /**
   * A block and what it is read from.
   *
   * @param copied whether only a copy of it is left
   */
  record Found(BlockRequest request, boolean copied) {}

  /**
   * Starts empty.
   *
   * @param version changes when the answers of the tracker may have changed
   */
  BlockLookups(Function<ReadRange, ShuffleBlocks> tracker, LongSupplier version) {
    this.tracker = tracker;
    this.version = version;
  }

  /**
   * Looks up the block of a map output. May wait for the driver.
   *
   * @return empty if the map output has no data in the range, or is unknown
   */
  Optional<Found> find(ReadRange range, long mapId) {
    long now = version.getAsLong();
    Answer answer;
    synchronized (answers) {
      answer = answers.get(range);
    }
    if (answer == null || answer.version != now) {
      answer = lookUp(range, now);
    }
    BlockRequest request = answer.byMap.get(mapId);
    return request == null
        ? Optional.empty()
        : Optional.of(new Found(request, answer.blocks.isCopied(request)));
  }

  private Answer lookUp(ReadRange range, long now) {
    ShuffleBlocks blocks = tracker.apply(range);
    Map<Long, BlockRequest> byMap = new HashMap<>();
    blocks.requests().forEach(request -> byMap.put(request.key().mapId(), request));
    Answer answer = new Answer(now, byMap, blocks);
    synchronized (answers) {
      answers.put(range, answer);
      if (answers.size() > MAX_RANGES) {
        answers.remove(answers.keySet().iterator().next());
      }
    }
    return answer;
  }

  /** Forgets a removed shuffle. */
  void forget(int shuffle) {
    synchronized (answers) {
      answers.keySet().removeIf(range -> range.shuffleId() == shuffle);
    }
  }
}
