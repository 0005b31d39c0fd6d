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

/** Fills an answer with chunks as long as the reader has room. For one thread. */
final class AnswerBuilder {
  private static final long ALIGNMENT = 64;

  private final OpenBlocks request;
  private final ServedStream stream;
  private final Packing packing;
  private final List<BlockKey> keys = new ArrayList<>();
  private final int[] rangeChunks;
  private long room;
  private long needed;
  private boolean full;
  private boolean complete;
  private final ChunkTable table = new ChunkTable();

  AnswerBuilder(OpenBlocks request, ServedStream stream, Packing packing) {
    this.request = request;
    this.packing = packing;
    this.stream = stream;
    this.room = request.mostBytes();
    this.rangeChunks = new int[request.ranges().size()];
  }

  /** Whether no further range has to be looked at. */
  boolean isFull() {
    return full;
  }

  /** Adds the next range's chunks, or those that there is room for. */
  void addRange(OwnedOutput output, int startPartition, int endPartition) {
    MapOutput index = output.index();
    int range = keys.size();
    int skipped = range == 0 ? request.firstChunk() : 0;
    int end = index.firstChunk(endPartition);
    // In long arithmetic: what is to be skipped was named by the peer.
    int first = (int) Math.min((long) index.firstChunk(startPartition) + skipped, end);
    int chunk = addChunks(output, startPartition, first, end);
    full = chunk < end;
    if (full && chunk == first && range > 0) {
      // Nothing of it is in the answer, so the range is left to the next request.
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
   * The reader asks for room by what chunks have when they are opened, so the first one is measured
   * by that alone; the others also by what is sent, which the budget of what is served was taken
   * for.
   */
  private boolean fits(MapOutput index, int chunk) {
    long bytes = table.count() == 0 ? index.length(chunk) : most(index, chunk);
    return bytes <= room && table.count() < request.mostChunks();
  }

  private static long most(MapOutput index, int chunk) {
    return Math.max(index.length(chunk), index.storedBytes(chunk));
  }

  private void add(OwnedOutput output, int chunk, int inPartition) {
    MapOutput index = output.index();
    long bytes = index.length(chunk);
    // What is sealed looks like noise, and does not get smaller.
    Packing.Packed packed =
        request.compression() == Compression.NONE || index.isSealed(chunk)
            ? null
            : packing.pack(request.compression(), index.key().shuffleId(), output.view(chunk));
    if (table.count() == 0) {
      table.startAt(chunk - index.firstChunk(inPartition));
    }
    table.add(
        inPartition,
        index.rows(chunk),
        request.checksums() ? output.checksum(chunk) : Checksum.NONE,
        packed == null ? (int) index.storedBytes(chunk) : packed.bytes(),
        bytes);
    room -= Math.min(room, (most(index, chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    stream.add(output, chunk, packed);
  }

  /** The answer, under the name its stream was given. */
  BlocksOpened answer(StreamId id) {
    return new BlocksOpened(
        id, needed, complete, keys, Arrays.copyOf(rangeChunks, keys.size()), table);
  }
}
