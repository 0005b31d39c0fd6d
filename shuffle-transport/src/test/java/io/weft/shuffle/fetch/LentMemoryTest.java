package io.weft.shuffle.fetch;

import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.ArenaOptions;
import io.weft.memory.Memory;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.fetch.CompressionChoice.LinkRate;
import io.weft.shuffle.fetch.PeerQueue.FetchPlan;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.net.OpenBlocks.BlockRange;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.PeerConnection;
import io.weft.shuffle.net.PeerConnection.PendingCall;
import io.weft.shuffle.net.PeerConnection.StreamReceiver;
import io.weft.shuffle.peer.ShuffleEvents.Fetch;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.Checksum;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.apache.spark.network.client.RpcResponseCallback;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The memory of a request that a connection reads into: its position, and when it is freed. */
class LentMemoryTest {
  private static final BlockKey KEY = new BlockKey(1, 4);
  private static final StreamId STREAM = new StreamId(7, 8);

  /** Chunks without gaps, except after the third one, which is not a multiple of 64. */
  private static final int[] LENGTHS = {64 << 10, 192 << 10, 100_001, 128 << 10, 1000, 90_000};

  @TempDir Path folder;

  private SharedArena arena;
  private final Connection connection = new Connection();
  private FetchRequest transfer;

  /** A connection that records its receiver. */
  private static final class Connection implements PeerConnection {
    private StreamReceiver receiver;

    @Override
    public void open(OpenBlocks request, PendingCall turn, RpcResponseCallback callback) {
      callback.onSuccess(answer().encode());
    }

    @Override
    public void receive(StreamId stream, PendingCall turn, StreamReceiver newReceiver) {
      receiver = newReceiver;
    }

    @Override
    public void decline(StreamId stream) {}

    @Override
    public long lastProgress() {
      return System.nanoTime();
    }

    @Override
    public boolean isActive() {
      return true;
    }

    @Override
    public void abort() {}
  }

  private static BlocksOpened answer() {
    ChunkTable table = new ChunkTable();
    for (int length : LENGTHS) {
      table.add(0, 1, Checksum.NONE, length, length);
    }
    return new BlocksOpened(STREAM, 0, true, List.of(KEY), new int[] {LENGTHS.length}, table);
  }

  @BeforeEach
  void open() throws Exception {
    arena = SharedArena.open(new ArenaOptions(folder, List.of(), 1 << 20, 1 << 20, 0, 0));
    start(null);
  }

  private void start(Fetch traced) throws IOException {
    OpenBlocks message =
        new OpenBlocks(
            "beefbeef",
            1 << 20,
            0,
            100,
            false,
            Compression.NONE,
            List.of(new BlockRange(KEY, 0, 1)));
    FetchPlan plan =
        new FetchPlan(null, List.of(request("peer", KEY, 0, 1, 1)), 0, 100, 1 << 20, false);
    transfer =
        new FetchRequest(
            plan,
            message,
            arena,
            arena.allocate(1 << 20, Use.RETAINED),
            Optional.empty(),
            new LinkRate(),
            changed -> {},
            0,
            Duration.ofMinutes(1));
    transfer.start(CompletableFuture.completedFuture(connection), traced);
  }

  @AfterEach
  void close() {
    transfer.close();
    assertThat(used()).isZero();
    arena.close();
  }

  private long used() {
    return arena.statistics().usedBytes();
  }

  @Test
  void memoryIsLentAsFarAsChunksAreContiguous() {
    ByteBuffer first = connection.receiver.lendBuffer();
    assertThat(first.remaining()).as("three chunks").isEqualTo((256 << 10) + 100_001);
    connection.receiver.bufferReturned();
  }

  @Test
  void lentMemoryIsFreedWhenItIsReturned() {
    assertThat(connection.receiver.lendBuffer()).isNotNull();
    assertThat(connection.receiver.lendBuffer()).as("after a stream that ended early").isNotNull();
    transfer.close();
    assertThat(used()).as("while it is written to").isPositive();
    connection.receiver.bufferReturned();
    assertThat(used()).as("while it holds messages").isPositive();
    connection.receiver.bufferReturned();
    assertThat(used()).isZero();
    assertThat(connection.receiver.lendBuffer()).as("of a closed transfer").isNull();
  }

  @Test
  void memoryThatIsNotLentIsFreedAtOnce() {
    assertThat(connection.receiver.lendBuffer()).isNotNull();
    connection.receiver.bufferReturned();
    transfer.close();
    assertThat(used()).isZero();
  }

  @Test
  void theEventOfARequestCountsChunksThatArrived() throws IOException {
    transfer.close();
    Path file = folder.resolveSibling(folder.getFileName() + ".jfr");
    try (Recording recording = new Recording()) {
      recording.enable("weft.Fetch");
      recording.start();
      start(Fetch.start());
      // Two chunks, and a part of the third one.
      connection.receiver.onData(STREAM.toString(), ByteBuffer.allocate((256 << 10) + 50_000));
      transfer.close();
      start(Fetch.start());
      transfer.close();
      recording.stop();
      recording.dump(file);
    }
    assertThat(RecordingFile.readAllEvents(file))
        .hasSize(2)
        .satisfiesExactlyInAnyOrder(
            begun -> {
              assertThat(begun.getLong("bytes")).isEqualTo(256 << 10);
              assertThat(begun.getLong("sentBytes")).isEqualTo(256 << 10);
              assertThat(begun.getInt("blocks")).isEqualTo(1);
              assertThat(begun.getString("failure")).isNotEmpty();
            },
            empty -> {
              assertThat(empty.getLong("bytes")).isZero();
              assertThat(empty.getLong("sentBytes")).isZero();
              assertThat(empty.getInt("blocks")).isZero();
            });
    Files.delete(file);
  }

  @Test
  void bytesComeInPlaceOrNot() throws IOException {
    Random random = new Random(3);
    byte[] sent = new byte[(int) answer().totalBytes()];
    random.nextBytes(sent);
    for (int at = 0; at < sent.length; ) {
      at += deliver(sent, at, random);
    }
    connection.receiver.onComplete(STREAM.toString());
    assertThat(transfer.failure()).isNull();
    assertThat(transfer.arrivedChunks()).isEqualTo(LENGTHS.length);
    ByteBuffer expected = ByteBuffer.wrap(sent);
    for (int chunk = 0; chunk < LENGTHS.length; chunk++) {
      byte[] found = new byte[LENGTHS[chunk]];
      Memory.copyTo(transfer.address(chunk), found, Memory.BYTE_ARRAY, found.length);
      assertThat(ByteBuffer.wrap(found))
          .as("chunk " + chunk)
          .isEqualTo(expected.slice(expected.position(), found.length));
      expected.position(expected.position() + found.length);
    }
  }

  /** Delivers bytes as a connection does: before it reads more. */
  private int deliver(byte[] sent, int at, Random random) throws IOException {
    int bytes = Math.min(1 + random.nextInt(60_000), sent.length - at);
    ByteBuffer lent = random.nextInt(4) == 0 ? null : connection.receiver.lendBuffer();
    ByteBuffer data = ByteBuffer.wrap(sent, at, bytes);
    if (lent != null) {
      bytes = Math.min(bytes, lent.remaining());
      data = lent.slice(0, bytes).put(sent, at, bytes).flip();
    }
    connection.receiver.onData(STREAM.toString(), data);
    if (lent != null) {
      connection.receiver.bufferReturned();
    }
    return bytes;
  }
}
