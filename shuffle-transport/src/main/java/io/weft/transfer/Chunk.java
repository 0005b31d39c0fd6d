package io.weft.transfer;

/** The chunk a reader stands on. Reused from chunk to chunk, for one thread. */
final class Chunk {
  long address;
  long length;
  int rows;
  int partition;
  BlockRequest request;

  void set(BlockRequest newRequest, int newPartition, int newRows, long at, long bytes) {
    request = newRequest;
    partition = newPartition;
    rows = newRows;
    address = at;
    length = bytes;
  }
}
