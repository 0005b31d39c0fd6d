package io.weft.transfer;

/** The current chunk of a reader. Reused for each chunk. For one thread. */
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
