package io.weft.wire;

import io.weft.encryption.SealedFormat;

/** Holds the chunks of an answer against the request, before anything is received. */
final class AnswerCheck {
  private static final long ALIGNMENT = 64;

  /** A chunk lies in one segment, which is mapped as one buffer. */
  private static final long MOST_CHUNK_BYTES = Integer.MAX_VALUE - ALIGNMENT + 1;

  private final WireReader reader;
  private final OpenBlocks request;

  AnswerCheck(WireReader reader, OpenBlocks request) {
    this.reader = reader;
    this.request = request;
  }

  /** Every chunk is in a partition that was asked for, in order, and has bytes. */
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
    reader.require(bytes > 0 && bytes <= MOST_CHUNK_BYTES, "bytes of a chunk", bytes);
    int sent = table.sentBytes(chunk);
    boolean packable = request.compression() != Compression.NONE;
    boolean sealed = sent == SealedFormat.sealedBytes(bytes);
    boolean plain = packable ? sent > 0 && sent <= bytes : sent == bytes;
    reader.require(sealed || plain, "sent bytes", sent);
  }

  /** The chunks fit in the room that was set aside, or the answer says how much is needed. */
  void room(ChunkTable table, long needed, boolean complete) throws WireException {
    long room = request.mostBytes();
    for (int chunk = 0; chunk < table.count(); chunk++) {
      long bytes = table.length(chunk);
      reader.require(bytes <= room, "bytes beyond those asked for", bytes);
      room -= Math.min(room, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }
    boolean starved = table.count() == 0 && !complete;
    boolean sound = starved ? needed > request.mostBytes() : needed == 0;
    reader.require(sound, "needed bytes", needed);
  }
}
