package io.weft.tcp;

import io.weft.catalog.BlockKey;
import io.weft.catalog.MapOutput;
import io.weft.catalog.OwnedOutput;
import io.weft.integrity.Checksum;
import io.weft.wire.BlocksOpened;
import io.weft.wire.ChunkTable;
import io.weft.wire.Compression;
import io.weft.wire.OpenBlocks;
import io.weft.wire.StreamId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Fills an answer with chunks until the reader's receive memory is full. For one thread. */
final class AnswerBuilder {
  private static final long ALIGNMENT = 64;

  private final OpenBlocks request;
  private final ServedStream stream;
  private final Packing compressor;
  private final List<BlockKey> keys = new ArrayList<>();
  private final int[] rangeChunks;
  private long bytesLeft;
  private long needed;
  private boolean full;
  private boolean complete;
  private final ChunkTable table = new ChunkTable();

  AnswerBuilder(OpenBlocks request, ServedStream stream, Packing compressor) {
    this.request = request;
    this.compressor = compressor;
    this.stream = stream;
    this.bytesLeft = request.mostBytes();
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
   * counts for the first chunk. For the others the sent length counts as well, because the server's
   * budget covers it.
   */
  private boolean fits(MapOutput index, int chunk) {
    long bytes = table.count() == 0 ? index.length(chunk) : most(index, chunk);
    return bytes <= bytesLeft && table.count() < request.mostChunks();
  }

  private static long most(MapOutput index, int chunk) {
    return Math.max(index.length(chunk), index.storedBytes(chunk));
  }

  private void add(OwnedOutput output, int chunk, int inPartition) {
    MapOutput index = output.index();
    long bytes = index.length(chunk);
    // Encrypted bytes do not compress.
    Packing.Compressed compressed =
        request.compression() == Compression.NONE || index.isSealed(chunk)
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
    bytesLeft -= Math.min(bytesLeft, (most(index, chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    stream.add(output, chunk, compressed);
  }

  /** Returns the answer for a stream of this id. */
  BlocksOpened answer(StreamId id) {
    return new BlocksOpened(
        id, needed, complete, keys, Arrays.copyOf(rangeChunks, keys.size()), table);
  }
}
