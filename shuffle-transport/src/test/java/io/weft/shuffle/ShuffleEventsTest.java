package io.weft.shuffle;

import static io.weft.support.TestBlocks.write;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.ShuffleEvents;
import io.weft.shuffle.store.BlockKey;
import io.weft.support.TestBlocks.Sizes;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The events of map outputs on disk, and events that no recording wants. */
class ShuffleEventsTest {
  private static final Sizes SIZES = (map, partition, chunk) -> chunk == 0 ? 100_000 : 0;

  @TempDir Path folder;

  private static List<RecordedEvent> named(List<RecordedEvent> events, String name) {
    return events.stream().filter(event -> event.getEventType().getName().equals(name)).toList();
  }

  @Test
  void chunksOnDiskAreRecorded() throws IOException {
    Path file = folder.resolve("recording.jfr");
    long spilled;
    try (TestCluster cluster = new TestCluster(folder);
        Recording recording = new Recording()) {
      cluster.memory(TestCluster.SEGMENT_BYTES, 2 * TestCluster.SEGMENT_BYTES);
      List.of("Executor", "Write", "Spill").forEach(name -> recording.enable("weft." + name));
      recording.start();
      ExecutorExchange owner = cluster.open("owner");
      for (int map = 0; map < 8; map++) {
        write(owner, new BlockKey(1, map), 3, SIZES);
      }
      spilled = owner.statistics().get(ExchangeCounter.BYTES_SPILLED);
      recording.stop();
      recording.dump(file);
    }
    List<RecordedEvent> events = RecordingFile.readAllEvents(file);
    List<RecordedEvent> spills = named(events, "weft.Spill");
    assertThat(spills)
        .isNotEmpty()
        .allSatisfy(event -> assertThat(event.getLong("bytes")).isEqualTo(100_000));
    // Extents are multiples of 64 bytes.
    assertThat(spills.size() * 100_032L).isEqualTo(spilled);
    assertThat(named(events, "weft.Write"))
        .hasSize(8)
        .allSatisfy(event -> assertThat(event.getLong("bytes")).isEqualTo(300_000));
    assertThat(named(events, "weft.Executor"))
        .isNotEmpty()
        .allSatisfy(event -> assertThat(event.getString("executor")).isEqualTo("owner"));
  }

  @Test
  void eventsThatNoRecordingWantsAreNotCreated() {
    try (Recording recording = new Recording()) {
      recording.enable("weft.Read");
      recording.start();
      assertThat(ShuffleEvents.Read.isReaderTraced()).isTrue();
      assertThat(ShuffleEvents.Write.start()).isNull();
      assertThat(ShuffleEvents.Publish.start()).isNull();
      assertThat(ShuffleEvents.Spill.start()).isNull();
      assertThat(ShuffleEvents.Serve.start()).isNull();
      recording.stop();
    }
    assertThat(ShuffleEvents.Read.isReaderTraced()).isFalse();
  }
}
