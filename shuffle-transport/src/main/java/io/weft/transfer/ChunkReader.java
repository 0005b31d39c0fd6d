package io.weft.transfer;

import java.util.List;

/**
 * Runs over the chunks of the blocks it was opened for: first those that are read in place, while
 * requests for the others are on their way, then those as they arrive. Within a block the chunks
 * come in the order in which the map task committed them.
 *
 * <p>A chunk's bytes stay readable until the second {@link #next()} after it, or {@link #close()};
 * with {@link #retainAll()} those of all chunks until {@link #close()}. For one task thread;
 * waiting can be interrupted, and ends with an error when a peer makes no progress within the
 * timeout. After an exception only {@link #close()} makes sense.
 */
public final class ChunkReader implements AutoCloseable {
  private final BlockReaders readers;
  private final Chunk chunk = new Chunk();
  private final ReadPlan plan;
  private List<BlockRequest> requests;
  private boolean closed;

  ChunkReader(BlockReaders readers, List<BlockRequest> requests, FetchListener listener) {
    this.readers = readers;
    this.requests = List.copyOf(requests);
    this.plan = new ReadPlan(readers, listener);
  }

  /**
   * Moves to the next chunk.
   *
   * @return false when every block has been delivered
   * @throws BlockFetchException if a block is missing, its peer failed or the deadline passed
   * @throws FetchInterruptedException if the thread was interrupted while it waited
   * @throws IllegalStateException if the reader or its exchange is closed
   */
  public boolean next() throws BlockFetchException {
    requireOpen();
    if (requests != null) {
      begin();
    }
    RemoteBlocks remote = plan.remote();
    if (remote != null) {
      remote.moveOn();
      remote.progress();
    }
    return plan.local().next(chunk) || (plan.remote() != null && plan.remote().next(chunk));
  }

  /**
   * Keeps the memory of all chunks until {@link #close()}: for a reader that comes back to them.
   * What came over the network, or lay on an encrypted disk, then needs that much memory of this
   * executor. To be called before the first {@link #next()}.
   */
  public void retainAll() {
    requireOpen();
    if (requests == null) {
      throw new IllegalStateException("chunks have been read already");
    }
    plan.retainAll();
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the reader is closed");
    }
    readers.requireOpen();
  }

  /**
   * Finds the way to each block; not before the first chunk is wanted, as it may ask the driver.
   */
  private void begin() throws BlockFetchException {
    List<BlockRequest> all = requests;
    requests = null;
    plan.addAll(all);
  }

  /** Address of the chunk's first byte, a multiple of 64. */
  public long address() {
    return chunk.address;
  }

  /** Bytes the map task committed, at least 1. */
  public long length() {
    return chunk.length;
  }

  /** Rows in the chunk. */
  public int rows() {
    return chunk.rows;
  }

  /** Partition the chunk belongs to. */
  public int partition() {
    return chunk.partition;
  }

  /** The request that asked for the chunk. */
  public BlockRequest request() {
    return chunk.request;
  }

  /** Ends the transfers that are under way and gives all memory back. Can be repeated. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    plan.close();
    readers.closed(this);
  }
}
