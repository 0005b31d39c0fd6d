package io.weft.transfer;

import java.util.List;

/**
 * Iterates over the chunks of requested blocks. Blocks that are read in place come first, while
 * requests for the others are under way. The others follow as they arrive. Within a block, chunks
 * come in the order in which the map task committed them.
 *
 * <p>A chunk's bytes stay readable until the second {@link #next()} after it, or until {@link
 * #close()}. After {@link #retainAll()}, all bytes stay readable until {@link #close()}.
 *
 * <p>For one task thread. Waiting can be interrupted. It fails if a peer makes no progress within
 * the timeout. After an exception, only {@link #close()} may be called.
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
   * @return false if all blocks have been delivered
   * @throws BlockFetchException if a block is missing, its peer failed or the timeout passed
   * @throws FetchInterruptedException if the thread is interrupted while it waits
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
   * Keeps the memory of all chunks until {@link #close()}, for callers that return to them. Chunks
   * from the network and encrypted chunks then use that much memory of this executor. Must be
   * called before the first {@link #next()}.
   */
  public void retainAll() {
    requireOpen();
    if (requests == null) {
      throw new IllegalStateException("chunks were read already");
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
   * Chooses the path of each block. Runs at the first {@link #next()}, because it may call the
   * driver.
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

  /** The bytes that the map task committed, at least 1. */
  public long length() {
    return chunk.length;
  }

  /** The rows of the chunk. */
  public int rows() {
    return chunk.rows;
  }

  /** The partition of the chunk. */
  public int partition() {
    return chunk.partition;
  }

  /** The request for the chunk. */
  public BlockRequest request() {
    return chunk.request;
  }

  /** Ends outstanding requests and frees all memory. Can be repeated. */
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
