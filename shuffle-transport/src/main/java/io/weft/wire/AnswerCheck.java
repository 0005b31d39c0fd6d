package io.weft.wire;

/** Holds the chunks of an answer against the request, before anything is received. */
final class AnswerCheck {
  private static final long ALIGNMENT = 64;

  private final WireReader reader;
  private final OpenBlocks request;

  AnswerCheck(WireReader reader, OpenBlocks request) {
    this.reader = reader;
    this.request = request;
  }

  /** Every chunk is in a partition that was asked for, in order, and has bytes. */
  void chunks(int[] rangeChunks, int[] partition, int[] rows, long[] length) throws WireException {
    reader.require(length.length <= request.mostChunks(), "chunks", length.length);
    int chunk = 0;
    for (int range = 0; range < rangeChunks.length; range++) {
      reader.require(rangeChunks[range] <= length.length - chunk, "chunks", rangeChunks[range]);
      BlockRange asked = request.ranges().get(range);
      int least = asked.startPartition();
      for (int end = chunk + rangeChunks[range]; chunk < end; chunk++) {
        boolean inside = partition[chunk] >= least && partition[chunk] < asked.endPartition();
        reader.require(inside, "partition of " + asked.key(), partition[chunk]);
        reader.require(rows[chunk] >= 0, "rows", rows[chunk]);
        reader.require(length[chunk] > 0, "bytes of a chunk", length[chunk]);
        least = partition[chunk];
      }
    }
    reader.require(chunk == length.length, "chunks without a range", length.length - chunk);
  }

  /** The chunks fit in the room that was set aside, or the answer says how much is needed. */
  void room(long[] length, long needed, boolean complete) throws WireException {
    long room = request.mostBytes();
    for (long bytes : length) {
      reader.require(bytes <= room, "bytes beyond those asked for", bytes);
      room -= Math.min(room, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }
    boolean starved = length.length == 0 && !complete;
    boolean sound = starved ? needed > request.mostBytes() : needed == 0;
    reader.require(sound, "needed bytes", needed);
  }
}
