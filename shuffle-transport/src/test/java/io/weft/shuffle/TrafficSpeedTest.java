package io.weft.shuffle;

import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/**
 * Measures checksums and compression over loopback. Runs with {@code -Dweft.speed=true} and prints
 * the results. The bytes are like rows of a join: ids, small numbers and a text of few words.
 */
@EnabledIfSystemProperty(named = "weft.speed", matches = "true")
class TrafficSpeedTest {
  private static final int MAPS = 64;
  private static final int CHUNK = 1 << 20;
  private static final int ROUNDS = 15;
  private static final String[] WORDS = {
    "furiously ", "regular ", "deposits ", "sleep ", "ironic "
  };

  @TempDir Path folder;

  @Test
  void report() throws IOException {
    for (TransportMode mode : List.of(TransportMode.AUTO, TransportMode.TCP)) {
      measure(mode, false, Compression.NONE, false);
      measure(mode, true, Compression.NONE, false);
      measure(mode, true, Compression.NONE, true);
    }
    measure(TransportMode.TCP, true, Compression.LZ4, false);
    measure(TransportMode.TCP, true, Compression.ZSTD, false);
  }

  private void measure(
      TransportMode mode, boolean checksums, Compression compression, boolean encrypted)
      throws IOException {
    Path place = Files.createTempDirectory(folder, "speed-");
    try (TestCluster cluster =
        new TestCluster(place)
            .mode(mode)
            .memory(512 << 20, encrypted ? 512 << 20 : 0)
            .window(8 << 20, 48 << 20)
            .traffic(new TrafficOptions(checksums, compression, 48 << 20, 1 << 30, 1 << 28))) {
      ExecutorExchange owner = (encrypted ? cluster.encrypted() : cluster).open("owner");
      for (int map = 0; map < MAPS; map++) {
        write(owner, map);
      }
      ExecutorExchange reader = cluster.open("reader");
      double[] seconds = new double[ROUNDS];
      for (int round = 0; round < ROUNDS; round++) {
        long started = System.nanoTime();
        assertThat(read(reader)).isEqualTo((long) MAPS * CHUNK);
        seconds[round] = (System.nanoTime() - started) / 1e9;
      }
      Arrays.sort(seconds);
      long compressed = owner.statistics().get(ExchangeCounter.COMPRESSED_BYTES_SENT);
      long before = owner.statistics().get(ExchangeCounter.COMPRESSED_BYTES_BEFORE);
      System.out.printf(
          "%s, checksums %s, %s, encrypted %s: median %.0f MB/s, best %.0f MB/s, ratio %.2f%n",
          mode,
          checksums,
          compression,
          encrypted,
          MAPS * CHUNK / 1e6 / seconds[ROUNDS / 2],
          MAPS * CHUNK / 1e6 / seconds[0],
          before == 0 ? 1 : (double) compressed / before);
    }
  }

  private static void write(ExecutorExchange owner, int map) throws IOException {
    SplittableRandom random = new SplittableRandom(map);
    try (MapOutputWriter writer = owner.newMapOutput(new BlockKey(1, map), 1)) {
      Extent extent = writer.allocate(CHUNK);
      long at = extent.address();
      long end = at + CHUNK;
      while (at + 72 <= end) {
        Memory.putLong(at, random.nextLong(1 << 30));
        Memory.putLong(at + 8, random.nextLong(50));
        Memory.putLong(at + 16, Double.doubleToLongBits(random.nextInt(100_000) / 100.0));
        String text = "";
        while (text.length() < 40) {
          text += WORDS[random.nextInt(WORDS.length)];
        }
        byte[] bytes = text.substring(0, 40).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        Memory.copyFrom(bytes, Memory.BYTE_ARRAY, at + 24, 40);
        Memory.putLong(at + 64, 0);
        at += 72;
      }
      Memory.setMemory(at, end - at, (byte) 0);
      writer.commit(0, extent, CHUNK, 1);
      writer.publish();
    }
  }

  private static long read(ExecutorExchange reader) throws IOException {
    List<BlockRequest> requests = new ArrayList<>();
    for (int map = 0; map < MAPS; map++) {
      requests.add(request("owner", new BlockKey(1, map), 0, 1, CHUNK));
    }
    long bytes = 0;
    try (ChunkReader chunks = reader.read(requests, FetchListener.NONE)) {
      while (chunks.next()) {
        bytes += chunks.length();
      }
    }
    return bytes;
  }
}
