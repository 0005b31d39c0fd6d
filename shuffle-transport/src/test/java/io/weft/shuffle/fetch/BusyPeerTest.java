package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.Checksum;
import io.weft.support.FakePeer;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A block arrives damaged, and its peer is busy at the retry. The blocks after it keep their memory
 * until they are delivered, so there is not enough memory for another retry.
 */
class BusyPeerTest {
  private static final BlockKey FIRST = new BlockKey(1, 0);
  private static final BlockKey SECOND = new BlockKey(1, 1);
  private static final int NOT_ITS_SUM = 12345;

  /** A limit far below the requested bytes. */
  private static final int FIRST_BYTES = 100;

  private static final int SECOND_BYTES = 1000;
  private static final int RETRY_MILLIS = 50;

  @TempDir Path folder;

  private final AtomicInteger asked = new AtomicInteger();
  private final ExecutorService thread = Executors.newSingleThreadExecutor();
  private TestCluster cluster;
  private ExecutorExchange reader;

  @BeforeEach
  void open() throws IOException {
    cluster = new TestCluster(folder).mode(TransportMode.TCP).window(1000, 4000).receiving(1500);
    reader = cluster.open("reader");
  }

  @AfterEach
  void close() throws IOException {
    thread.shutdownNow();
    cluster.close();
  }

  private static StreamId stream(BlockKey key) {
    return new StreamId(7, key.mapId());
  }

  /** Answers three requests for the first block: damaged, refused, and good. */
  private ByteBuffer answer(ByteBuffer message) throws IOException {
    BlockKey key = OpenBlocks.decode(message).ranges().get(0).key();
    if (key.equals(SECOND)) {
      return opened(SECOND, SECOND_BYTES, Checksum.NONE);
    }
    return switch (asked.incrementAndGet()) {
      case 1 -> opened(FIRST, FIRST_BYTES, NOT_ITS_SUM);
      case 2 -> new BlocksRefused(-1, RETRY_MILLIS, "busy").encode();
      default -> opened(FIRST, FIRST_BYTES, Checksum.NONE);
    };
  }

  private static ByteBuffer opened(BlockKey key, int bytes, int sum) {
    ChunkTable table = new ChunkTable().add(0, 1, sum, bytes, bytes);
    return new BlocksOpened(stream(key), 0, true, List.of(key), new int[] {1}, table).encode();
  }

  private List<Long> read() throws BlockFetchException {
    List<BlockRequest> requests =
        List.of(request("peer", FIRST, 0, 1, 1000), request("peer", SECOND, 0, 1, SECOND_BYTES));
    List<Long> lengths = new ArrayList<>();
    try (ChunkReader chunks = reader.read(requests, FetchListener.NONE)) {
      while (chunks.next()) {
        lengths.add(chunks.length());
      }
    }
    return lengths;
  }

  @Test
  void aRefusedBlockArrivesThoughOthersKeepTheirMemory() throws Exception {
    try (FakePeer peer =
        new FakePeer((client, message, callback) -> callback.onSuccess(answer(message)))) {
      peer.stream(stream(FIRST).toString(), new byte[FIRST_BYTES]);
      peer.stream(stream(SECOND).toString(), new byte[SECOND_BYTES]);
      cluster.announce(peer.address("peer"));
      assertThat(thread.submit(this::read).get(60, TimeUnit.SECONDS))
          .containsExactly((long) FIRST_BYTES, (long) SECOND_BYTES);
      assertThat(asked).hasValue(3);
      assertThat(reader.statistics().get(ExchangeCounter.REQUESTS_POSTPONED)).isEqualTo(1);
      TestCluster.assertNothingHeld(reader);
    }
  }
}
