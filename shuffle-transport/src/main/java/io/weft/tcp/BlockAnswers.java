package io.weft.tcp;

import static io.weft.metrics.ExchangeCounter.BLOCKS_SERVED;
import static io.weft.metrics.ExchangeCounter.BYTES_SERVED;
import static io.weft.metrics.ExchangeCounter.PACKED_BYTES_SENT;
import static io.weft.metrics.ExchangeCounter.PACKED_BYTES_SERVED;
import static io.weft.metrics.ExchangeCounter.REQUESTS_REFUSED;
import static io.weft.metrics.ExchangeCounter.REQUESTS_SERVED;

import io.netty.channel.Channel;
import io.weft.catalog.BlockCatalog;
import io.weft.catalog.OwnedBlocks;
import io.weft.catalog.OwnedOutput;
import io.weft.memory.SettingNames;
import io.weft.metrics.ExchangeCounters;
import io.weft.wire.BlockRange;
import io.weft.wire.BlocksOpened;
import io.weft.wire.BlocksRefused;
import io.weft.wire.ChunkTable;
import io.weft.wire.Compression;
import io.weft.wire.OpenBlocks;
import io.weft.wire.StreamId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Answers the block requests of peers and opens the streams for them. Reserves the bytes of an
 * answer from the budget before it looks up any block. If the budget is used up, it asks the peer
 * to retry later and holds nothing for it. Thread-safe.
 */
final class BlockAnswers {
  /** About the time that sending a stream of usual size takes. */
  private static final int RETRY_MILLIS = 20;

  private final String executorId;
  private final String incarnation;
  private final BlockCatalog catalog;
  private final Packing compressor;
  private final ServedBudget budget;
  private final ServedStreams streams;
  private final ExchangeCounters counters;
  private final SettingNames names;

  BlockAnswers(
      String executorId,
      String incarnation,
      BlockCatalog catalog,
      Packing compressor,
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
    if (!budget.take(channel, request.mostBytes())) {
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
      return open(channel, request);
    } catch (IllegalStateException e) {
      return refuse(e);
    }
  }

  /** Returns the message for a request that cannot be decoded or run. */
  ByteBuffer refuse(Exception reason) {
    return refuse(-1, 0, "executor " + executorId + ": " + reason.getMessage());
  }

  private ByteBuffer open(Channel channel, OpenBlocks request) {
    Map<Integer, OwnedBlocks> holds = new HashMap<>();
    ServedStream stream = new ServedStream(channel, holds.values(), compressor);
    stream.onClose(() -> budget.give(channel, request.mostBytes()));
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
      return accept(request, builder, stream);
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
              + " partitions, asked for were ["
              + wanted.startPartition()
              + ", "
              + wanted.endPartition()
              + ")");
    }
  }

  private ByteBuffer accept(OpenBlocks request, AnswerBuilder builder, ServedStream stream) {
    StreamId id = StreamId.NONE;
    if (stream.bytes() > 0) {
      budget.give(stream.channel(), request.mostBytes() - stream.bytes());
      stream.onClose(() -> budget.give(stream.channel(), stream.bytes()));
      id = streams.register(stream);
    }
    BlocksOpened answer = builder.answer(id);
    counters.increment(REQUESTS_SERVED);
    counters.add(BLOCKS_SERVED, answer.blocks());
    counters.add(BYTES_SERVED, answer.totalBytes());
    if (request.compression() != Compression.NONE) {
      countCompressed(answer.table());
    }
    return answer.encode();
  }

  private void countCompressed(ChunkTable table) {
    for (int chunk = 0; chunk < table.count(); chunk++) {
      if (table.isCompressed(chunk)) {
        counters.add(PACKED_BYTES_SERVED, table.length(chunk));
        counters.add(PACKED_BYTES_SENT, table.sentBytes(chunk));
      }
    }
  }

  private ByteBuffer refuse(int range, int retryMillis, String reason) {
    counters.increment(REQUESTS_REFUSED);
    return new BlocksRefused(range, retryMillis, reason).encode();
  }
}
