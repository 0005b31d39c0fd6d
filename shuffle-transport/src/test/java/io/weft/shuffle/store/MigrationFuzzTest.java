package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.support.Noise;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/**
 * Migrated map outputs with damaged streams. Each stream is published completely or refused. A
 * refused stream holds no memory of the arena.
 */
class MigrationFuzzTest {
  private static final BlockKey KEY = new BlockKey(1, 2);
  private static final long SEGMENT = 1 << 20;

  /** The offsets of an index's checksum and of the bytes that it covers. */
  private static final int INDEX_SUM = 8;

  private static final int INDEX_CHECKED = 12;

  @TempDir Path folder;

  private SharedArena arena;
  private BlockCatalog catalog;

  @BeforeEach
  void open() throws IOException {
    arena = SharedArena.open(new ArenaOptions(folder, List.of(), SEGMENT, 4 * SEGMENT, 0, 0));
    catalog =
        new BlockCatalog(
            folder,
            List.of(),
            arena,
            SEGMENT,
            true,
            Optional.empty(),
            shuffle -> false,
            new ExchangeCounters());
  }

  @AfterEach
  void close() {
    catalog.close();
    arena.close();
  }

  @Test
  void everyStreamIsAcceptedOrRefused() {
    for (long seed = 0; seed < 5000; seed++) {
      Noise.round(seed, this::round);
    }
  }

  @Test
  @EnabledIfSystemProperty(named = Noise.MINUTES, matches = "\\d+")
  @Timeout(value = 3, unit = TimeUnit.HOURS)
  void everyStreamIsAcceptedOrRefusedForTheRequestedTime() {
    System.out.println(Noise.forMinutes(this::round) + " map outputs");
  }

  private void round(SplittableRandom random) throws IOException {
    byte[] sent = stream(random);
    Noise.check(
        // The bytes themselves and the overhead of an arena's extents.
        sent.length + 4096, IOException.class, () -> take(ByteBuffer.wrap(sent), random));
    if (catalog.contains(KEY)) {
      // A new catalog accepts outputs of a shuffle that was removed before.
      reopen();
    }
    assertThat(arena.statistics().memory().usedBytes())
        .as("bytes held for refused streams")
        .isZero();
  }

  private long take(ByteBuffer sent, SplittableRandom random) throws IOException {
    try (IncomingOutput output = new IncomingOutput(catalog, KEY, new ExchangeCounters())) {
      while (sent.hasRemaining()) {
        int count = Math.min(sent.remaining(), 1 + random.nextInt(800));
        output.append(sent.slice(sent.position(), count));
        sent.position(sent.position() + count);
      }
      return output.finish();
    }
  }

  private void reopen() throws IOException {
    close();
    open();
  }

  /** Returns head, index and chunks, with one of them, or all of them, changed. */
  private static byte[] stream(SplittableRandom random) {
    ByteBuffer index = Noise.index(KEY, random);
    if (random.nextInt(3) == 0) {
      index = Noise.mangled(index, random, INDEX_CHECKED, INDEX_SUM);
    }
    byte[] chunks = new byte[chunkBytes(index, random)];
    random.nextBytes(chunks);
    CRC32C crc = new CRC32C();
    crc.update(chunks);
    ByteBuffer all =
        ByteBuffer.allocate(MigrationFormat.HEAD_BYTES + index.remaining() + chunks.length)
            .order(ByteOrder.LITTLE_ENDIAN);
    all.putInt(0x4f544657).putInt(1).putInt(index.remaining()).putInt((int) crc.getValue());
    all.put(index).put(chunks).flip();
    return random.nextInt(3) == 0
        ? Noise.mangled(all, random, MigrationFormat.HEAD_BYTES)
        : all.array();
  }

  /** Returns the chunk bytes of a valid index, or a random number for an invalid one. */
  private static int chunkBytes(ByteBuffer index, SplittableRandom random) {
    int chunks = index.remaining() < 40 ? 0 : index.getInt(36);
    if (chunks < 0 || chunks > 10 || index.remaining() < 8 * chunks) {
      return random.nextInt(2000);
    }
    long bytes = 0;
    for (int i = 1; i <= chunks; i++) {
      bytes += index.getLong(index.limit() - 8 * i);
    }
    return bytes < 0 || bytes > 20_000 ? random.nextInt(2000) : (int) bytes;
  }
}
