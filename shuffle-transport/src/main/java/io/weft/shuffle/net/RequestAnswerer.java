package io.weft.shuffle.net;

import static io.weft.shuffle.peer.ExchangeCounter.BLOCKS_SERVED;
import static io.weft.shuffle.peer.ExchangeCounter.BYTES_SERVED;
import static io.weft.shuffle.peer.ExchangeCounter.COMPRESSED_BYTES_BEFORE;
import static io.weft.shuffle.peer.ExchangeCounter.COMPRESSED_BYTES_SENT;
import static io.weft.shuffle.peer.ExchangeCounter.REQUESTS_REFUSED;
import static io.weft.shuffle.peer.ExchangeCounter.REQUESTS_SERVED;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.netty.channel.Channel;
import io.weft.device.probe.JfrModule;
import io.weft.memory.SettingNames;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.OpenBlocks.BlockRange;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.ServedStreams.ServedStream;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.peer.ShuffleEvents.Serve;
import io.weft.shuffle.store.BlockCatalog;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.Checksum;
import io.weft.shuffle.store.MapOutput;
import io.weft.shuffle.store.OwnedOutput;
import io.weft.shuffle.store.OwnedOutput.OwnedHold;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Answers the block requests of peers and opens the streams for them. Reserves the bytes of an
 * answer from the budget before it looks up any block. If the budget is used up, it asks the peer
 * to retry later and holds nothing for it. Thread-safe.
 */
final class RequestAnswerer {
  /** About the time that sending a stream of usual size takes. */
  private static final int RETRY_MILLIS = 20;

  private final String executorId;
  private final String incarnation;
  private final BlockCatalog catalog;
  private final BlockCompressor compressor;
  private final ServedBudget budget;
  private final ServedStreams streams;
  private final ExchangeCounters counters;
  private final SettingNames names;

  RequestAnswerer(
      String executorId,
      String incarnation,
      BlockCatalog catalog,
      BlockCompressor compressor,
      ServedBudget budget,
      ServedStreams streams,
      ExchangeCounters counters,
      SettingNames names) {
    this.executorId = executorId;
    this.incarnation = incarnation;
    this.catalog = catalog;
    this.compressor = compressor;
    this.budget = budget;
    this.streams = streams;
    this.counters = counters;
    this.names = names;
  }

  /** Returns the message that answers a request on a channel. */
  ByteBuffer answer(Channel channel, OpenBlocks request) {
    Serve traced = JfrModule.PRESENT ? Serve.start() : null;
    if (!request.incarnation().equals(incarnation)) {
      return refuse(
          -1,
          0,
          "this is executor "
              + executorId
              + ", incarnation "
              + incarnation
              + "; the request is for incarnation "
              + request.incarnation()
              + ", which has ended");
    }
    if (!budget.tryReserve(channel, request.maxBytes())) {
      return refuse(
          -1,
          RETRY_MILLIS,
          "executor "
              + executorId
              + " holds "
              + budget.bytes()
              + " bytes for peers ("
              + names.of("maxServedBytes")
              + ", "
              + names.of("maxServedBytesPerPeer")
              + ")");
    }
    try {
      return open(channel, request, traced);
    } catch (IllegalStateException e) {
      return refuse(e);
    }
  }

  /** Returns the message for a request that cannot be decoded or run. */
  ByteBuffer refuse(Exception reason) {
    return refuse(-1, 0, "executor " + executorId + ": " + reason.getMessage());
  }

  private ByteBuffer open(Channel channel, OpenBlocks request, Serve traced) {
    Map<Integer, OwnedHold> holds = new HashMap<>();
    ServedStream stream = new ServedStream(channel, holds.values(), compressor);
    stream.onClose(() -> budget.release(channel, request.maxBytes()));
    boolean kept = false;
    try {
      AnswerBuilder builder = new AnswerBuilder(request, stream, compressor);
      List<BlockRange> ranges = request.ranges();
      for (int range = 0; range < ranges.size() && !builder.isFull(); range++) {
        BlockRange wanted = ranges.get(range);
        try {
          OwnedOutput output =
              holds.computeIfAbsent(wanted.key().shuffleId(), catalog::hold).owned(wanted.key());
          requirePartitions(wanted, output);
          builder.addRange(output, wanted.startPartition(), wanted.endPartition());
        } catch (IOException e) {
          return refuse(range, 0, e.getMessage());
        }
      }
      kept = stream.bytes() > 0;
      return accept(request, builder, stream, traced);
    } finally {
      if (!kept) {
        stream.close();
      }
    }
  }

  private static void requirePartitions(BlockRange wanted, OwnedOutput output) throws IOException {
    if (wanted.endPartition() > output.index().partitions()) {
      throw new IOException(
          wanted.key()
              + " has "
              + output.index().partitions()
              + " partitions, requested were ["
              + wanted.startPartition()
              + ", "
              + wanted.endPartition()
              + ")");
    }
  }

  private ByteBuffer accept(
      OpenBlocks request, AnswerBuilder builder, ServedStream stream, Serve traced) {
    StreamId id = StreamId.NONE;
    if (stream.bytes() > 0) {
      budget.release(stream.channel(), request.maxBytes() - stream.bytes());
      stream.onClose(() -> budget.release(stream.channel(), stream.bytes()));
      id = streams.register(stream);
    }
    BlocksOpened answer = builder.answer(id);
    counters.increment(REQUESTS_SERVED);
    counters.add(BLOCKS_SERVED, answer.blocks());
    counters.add(BYTES_SERVED, answer.totalBytes());
    if (request.compression() != Compression.NONE) {
      countCompressed(answer.table());
    }
    trace(traced, request, answer, stream.channel());
    return answer.encode();
  }

  private static void trace(
      Serve traced, OpenBlocks request, BlocksOpened answer, Channel channel) {
    if (traced != null) {
      traced.end();
      traced.shuffleId = request.ranges().get(0).key().shuffleId();
      traced.peer = String.valueOf(channel.remoteAddress());
      traced.blocks = answer.blocks();
      traced.bytes = answer.totalBytes();
      traced.sentBytes = answer.table().totalSentBytes();
      traced.stream = answer.stream().toString();
      traced.commit();
    }
  }

  private void countCompressed(ChunkTable table) {
    for (int chunk = 0; chunk < table.count(); chunk++) {
      if (table.isCompressed(chunk)) {
        counters.add(COMPRESSED_BYTES_BEFORE, table.length(chunk));
        counters.add(COMPRESSED_BYTES_SENT, table.sentBytes(chunk));
      }
    }
  }

  private ByteBuffer refuse(int range, int retryMillis, String reason) {
    counters.increment(REQUESTS_REFUSED);
    return new BlocksRefused(range, retryMillis, reason).encode();
  }

  /**
   * Limits the bytes of answers that are open and not fully sent. Each peer also has its own limit,
   * so a peer that does not receive its data cannot block the others. Thread-safe.
   */
  static final class ServedBudget {
    private final long maxBytes;
    private final long maxBytesPerPeer;

    @GuardedBy("this")
    private final Map<Channel, Long> byPeer = new HashMap<>();

    @GuardedBy("this")
    private long bytes;

    /**
     * Starts empty.
     *
     * @param maxBytes for all peers
     * @param maxBytesPerPeer on one connection
     */
    ServedBudget(long maxBytes, long maxBytesPerPeer) {
      this.maxBytes = maxBytes;
      this.maxBytesPerPeer = maxBytesPerPeer;
    }

    /**
     * Reserves bytes for a peer if enough are left. A request above the limit is granted when no
     * other bytes are reserved.
     */
    synchronized boolean tryReserve(Channel peer, long wanted) {
      long known = byPeer.getOrDefault(peer, 0L);
      if (exceeds(known, wanted, maxBytesPerPeer) || exceeds(bytes, wanted, maxBytes)) {
        return false;
      }
      byPeer.put(peer, known + wanted);
      bytes += wanted;
      return true;
    }

    private static boolean exceeds(long taken, long wanted, long limit) {
      return taken > 0 && wanted > limit - taken;
    }

    /** Returns reserved bytes. */
    synchronized void release(Channel peer, long taken) {
      bytes -= taken;
      byPeer.computeIfPresent(peer, (same, known) -> known == taken ? null : known - taken);
    }

    /** The bytes that are reserved now. */
    synchronized long bytes() {
      return bytes;
    }
  }

  /** Fills an answer with chunks until the reader's receive memory is full. For one thread. */
  static final class AnswerBuilder {
    private static final long ALIGNMENT = 64;

    private final OpenBlocks request;
    private final ServedStream stream;
    private final BlockCompressor compressor;
    private final List<BlockKey> keys = new ArrayList<>();
    private final int[] rangeChunks;
    private long bytesLeft;
    private long needed;
    private boolean full;
    private boolean complete;
    private final ChunkTable table = new ChunkTable();

    AnswerBuilder(OpenBlocks request, ServedStream stream, BlockCompressor compressor) {
      this.request = request;
      this.compressor = compressor;
      this.stream = stream;
      this.bytesLeft = request.maxBytes();
      this.rangeChunks = new int[request.ranges().size()];
    }

    /** Whether the answer takes no further range. */
    boolean isFull() {
      return full;
    }

    /** Adds the next range's chunks, or as many of them as fit. */
    void addRange(OwnedOutput output, int startPartition, int endPartition) {
      MapOutput index = output.index();
      int range = keys.size();
      int skipped = range == 0 ? request.firstChunk() : 0;
      int end = index.firstChunk(endPartition);
      // Long arithmetic, because the peer chose the number to skip.
      int first = (int) Math.min((long) index.firstChunk(startPartition) + skipped, end);
      int chunk = addChunks(output, startPartition, first, end);
      full = chunk < end;
      if (full && chunk == first && range > 0) {
        // The answer has no chunk of this range. The next request asks for it.
        return;
      }
      keys.add(index.key());
      rangeChunks[range] = chunk - first;
      complete = !full;
      needed = full && table.count() == 0 ? index.length(chunk) : 0;
    }

    /** Returns the first chunk that was not added. */
    private int addChunks(OwnedOutput output, int startPartition, int first, int end) {
      MapOutput index = output.index();
      int in = startPartition;
      int chunk = first;
      while (chunk < end && fits(index, chunk)) {
        while (chunk >= index.firstChunk(in + 1)) {
          in++;
        }
        add(output, chunk, in);
        chunk++;
      }
      return chunk;
    }

    /**
     * Whether a chunk fits. The reader sizes its memory by plain chunk lengths, so only that length
     * counts for the first chunk. For the others the sent length counts as well, because the
     * server's budget covers it.
     */
    private boolean fits(MapOutput index, int chunk) {
      long bytes = table.count() == 0 ? index.length(chunk) : larger(index, chunk);
      return bytes <= bytesLeft && table.count() < request.maxChunks();
    }

    private static long larger(MapOutput index, int chunk) {
      return Math.max(index.length(chunk), index.storedBytes(chunk));
    }

    private void add(OwnedOutput output, int chunk, int inPartition) {
      MapOutput index = output.index();
      long bytes = index.length(chunk);
      // Encrypted bytes do not compress.
      BlockCompressor.Compressed compressed =
          request.compression() == Compression.NONE || index.isEncrypted(chunk)
              ? null
              : compressor.compress(
                  request.compression(), index.key().shuffleId(), output.view(chunk));
      if (table.count() == 0) {
        table.startAt(chunk - index.firstChunk(inPartition));
      }
      table.add(
          inPartition,
          index.rows(chunk),
          request.checksums() ? output.checksum(chunk) : Checksum.NONE,
          compressed == null ? (int) index.storedBytes(chunk) : compressed.bytes(),
          bytes);
      bytesLeft -=
          Math.min(bytesLeft, (larger(index, chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
      stream.add(output, chunk, compressed);
    }

    /** Returns the answer for a stream of this id. */
    BlocksOpened answer(StreamId id) {
      return new BlocksOpened(
          id, needed, complete, keys, Arrays.copyOf(rangeChunks, keys.size()), table);
    }
  }
}
