package io.weft.wire;

import io.weft.encryption.SealedFormat;

/** Checks the chunks of an answer against the request, before any chunk is received. */
final class AnswerCheck {
  private static final long ALIGNMENT = 64;

  /** A chunk is in one segment, which is mapped as one buffer. */
  private static final long MAX_CHUNK_BYTES = Integer.MAX_VALUE - ALIGNMENT + 1;

  private final WireReader reader;
  private final OpenBlocks request;

  AnswerCheck(WireReader reader, OpenBlocks request) {
    this.reader = reader;
    this.request = request;
  }

  /** Requires that chunks are in requested partitions, in order, and not empty. */
  void chunks(int[] rangeChunks, ChunkTable table) throws WireException {
    int count = table.count();
    reader.require(count <= request.mostChunks(), "chunks", count);
    int position = table.firstPosition();
    reader.require(position <= request.firstChunk(), "first position", position);
    int chunk = 0;
    for (int range = 0; range < rangeChunks.length; range++) {
      reader.require(rangeChunks[range] <= count - chunk, "chunks", rangeChunks[range]);
      BlockRange asked = request.ranges().get(range);
      int least = asked.startPartition();
      for (int end = chunk + rangeChunks[range]; chunk < end; chunk++) {
        int partition = table.partition(chunk);
        boolean inside = partition >= least && partition < asked.endPartition();
        reader.require(inside, "partition of " + asked.key(), partition);
        chunk(table, chunk);
        least = partition;
      }
    }
    reader.require(chunk == count, "chunks without a range", count - chunk);
  }

  private void chunk(ChunkTable table, int chunk) throws WireException {
    long bytes = table.length(chunk);
    reader.require(table.rows(chunk) >= 0, "rows", table.rows(chunk));
    reader.require(bytes > 0 && bytes <= MAX_CHUNK_BYTES, "bytes of a chunk", bytes);
    int sent = table.sentBytes(chunk);
    boolean compressible = request.compression() != Compression.NONE;
    boolean encrypted = sent == SealedFormat.sealedBytes(bytes);
    boolean plain = compressible ? sent > 0 && sent <= bytes : sent == bytes;
    reader.require(encrypted || plain, "sent bytes", sent);
  }

  /**
   * Requires that the chunks fit into the reader's memory, or that the answer says how much the
   * next chunk needs.
   */
  void size(ChunkTable table, long needed, boolean complete) throws WireException {
    long left = request.mostBytes();
    for (int chunk = 0; chunk < table.count(); chunk++) {
      long bytes = table.length(chunk);
      reader.require(bytes <= left, "bytes beyond those asked for", bytes);
      left -= Math.min(left, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }
    boolean starved = table.count() == 0 && !complete;
    boolean sound = starved ? needed > request.mostBytes() : needed == 0;
    reader.require(sound, "needed bytes", needed);
  }
}
