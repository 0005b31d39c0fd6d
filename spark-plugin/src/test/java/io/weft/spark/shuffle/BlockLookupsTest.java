package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.shuffle.ShuffleBlocks.ReadRange;
import io.weft.spark.shuffle.WeftBlockResolver.BlockLookups;
import io.weft.spark.shuffle.WeftBlockResolver.BlockLookups.Found;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import scala.Option;

/** Spark's tracker is asked once for all blocks of a range, and again when it has changed. */
class BlockLookupsTest {
  private static final int MAPS = 1000;

  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicLong version = new AtomicLong();
  private final BlockLookups lookups = new BlockLookups(this::answer, version::get);

  /** Outputs with even map ids are at executor 1, and of the others only copies are left. */
  private ShuffleBlocks answer(ReadRange range) {
    asked.incrementAndGet();
    List<BlockRequest> requests =
        IntStream.range(0, MAPS)
            .mapToObj(
                map ->
                    new BlockRequest(
                        map % 2 == 0 ? "1" : "copies",
                        new BlockKey(range.shuffleId(), map),
                        map,
                        range.startPartition(),
                        range.endPartition(),
                        version.get()))
            .toList();
    return new ShuffleBlocks(
        requests,
        Map.of(
            "1", BlockManagerId.apply("1", "host", 7000, Option.empty()),
            "copies", SurviveSettings.place("1")));
  }

  private static ReadRange range(int shuffle, int partition) {
    return new ReadRange(shuffle, 0, Integer.MAX_VALUE, partition, partition + 1);
  }

  @Test
  void theTrackerIsAskedOnceForAllBlocksOfConcurrentReaders() {
    for (int map = 0; map < MAPS; map++) {
      for (int partition = 0; partition < 8; partition++) {
        Found found = lookups.find(range(3, partition), map).orElseThrow();
        assertThat(found.request().key()).isEqualTo(new BlockKey(3, map));
        assertThat(found.request().startPartition()).isEqualTo(partition);
        assertThat(found.copied()).isEqualTo(map % 2 == 1);
      }
    }
    assertThat(asked).hasValue(8);
    assertThat(lookups.find(range(3, 0), MAPS)).isEmpty();
  }

  @Test
  void changedPlacesAreFound() {
    assertThat(lookups.find(range(3, 0), 1).orElseThrow().request().expectedBytes()).isZero();
    version.set(5);
    assertThat(lookups.find(range(3, 0), 1).orElseThrow().request().expectedBytes()).isEqualTo(5);
  }

  @Test
  void removedShufflesAndOldRangesAreForgotten() {
    lookups.find(range(3, 0), 1);
    lookups.forget(3);
    lookups.find(range(3, 0), 1);
    assertThat(asked).hasValue(2);
    for (int partition = 0; partition < 100; partition++) {
      lookups.find(range(4, partition), 1);
    }
    lookups.find(range(4, 99), 1);
    assertThat(asked).hasValue(102);
    lookups.find(range(4, 0), 1);
    assertThat(asked).hasValue(103);
  }
}
