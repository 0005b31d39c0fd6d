package io.weft.shuffle.fetch;

import static io.weft.shuffle.peer.ExchangeCounter.CHECKSUM_FAILURES;
import static io.weft.shuffle.peer.ExchangeCounter.COPY_BLOCKS_READ;
import static io.weft.shuffle.peer.ExchangeCounter.COPY_BYTES_READ;

import io.weft.shuffle.fetch.BlockFetchException.FetchFailures;
import io.weft.shuffle.fetch.BlockFetchException.ReadPath;
import io.weft.shuffle.fetch.BlockReaders.Copies;
import io.weft.shuffle.fetch.ChunkReader.CurrentChunk;
import io.weft.shuffle.fetch.LocalBlocks.LoadedChunks;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.shuffle.store.ChunkDecryptor;
import io.weft.shuffle.store.CopiedOutput;
import io.weft.shuffle.store.MapOutput;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.util.ArrayDeque;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads blocks from copies of map outputs, one after the other. Each chunk is verified, or
 * decrypted, before it is delivered. For one thread.
 */
final class CopiedBlocks implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CopiedBlocks.class);

  private final Copies copies;
  private final CopyIndexes indexes;
  private final FetchFailures failures;
  private final FetchListener listener;
  private final ExchangeCounters counters;
  private final LoadedChunks loaded;
  private final ArrayDeque<BlockRequest> requests = new ArrayDeque<>();

  private BlockRequest request;
  private CopiedOutput copy;
  private int partition;
  private int chunk;
  private int lastChunk;

  /**
   * Starts without blocks.
   *
   * @param copies whose blocks are read
   * @param indexes of copies, which all readers of the executor share
   * @param loaded owns the memory of chunks; closed with this object
   */
  CopiedBlocks(
      Copies copies,
      CopyIndexes indexes,
      FetchFailures failures,
      FetchListener listener,
      ExchangeCounters counters,
      LoadedChunks loaded) {
    this.copies = copies;
    this.indexes = indexes;
    this.failures = failures;
    this.listener = listener;
    this.counters = counters;
    this.loaded = loaded;
  }

  void add(BlockRequest added) {
    requests.add(added);
  }

  /** Moves to the next chunk. Returns false if there is none. */
  boolean next(CurrentChunk current) throws BlockFetchException {
    loaded.freePrevious();
    while (chunk == lastChunk) {
      closeCopy();
      request = requests.poll();
      if (request == null) {
        return false;
      }
      open();
    }
    MapOutput index = copy.index();
    while (chunk >= index.firstChunk(partition + 1)) {
      partition++;
    }
    current.set(request, partition, index.rows(chunk), load(), index.length(chunk));
    chunk++;
    return true;
  }

  private void open() throws BlockFetchException {
    partition = request.startPartition();
    long start = System.nanoTime();
    try {
      String writer = copies.writer(request.executorId()).orElseThrow();
      copy = indexes.open(copies.store(), request.key(), writer);
      if (request.endPartition() > copy.index().partitions()) {
        throw new IOException("its copy has " + copy.index().partitions() + " partitions");
      }
    } catch (IOException | RuntimeException e) {
      throw failed(e);
    }
    MapOutput index = copy.index();
    chunk = index.firstChunk(partition);
    lastChunk = index.firstChunk(request.endPartition());
    copy.select(chunk, lastChunk);
    int blocks = index.blocks(partition, request.endPartition());
    long bytes = index.bytes(partition, request.endPartition());
    counters.add(COPY_BLOCKS_READ, blocks);
    counters.add(COPY_BYTES_READ, bytes);
    listener.remote(1, blocks, bytes);
    listener.waited(System.nanoTime() - start);
  }

  private long load() throws BlockFetchException {
    long start = System.nanoTime();
    try {
      return loaded.load(copy.index().length(chunk), (into, keys) -> read(into, keys));
    } catch (IOException e) {
      throw failed(e);
    } finally {
      listener.waited(System.nanoTime() - start);
    }
  }

  /** File systems of Hadoop also throw unchecked exceptions, for example of their clients. */
  private void read(ByteBuffer into, ChunkDecryptor keys) throws IOException {
    try {
      copy.read(partition, chunk, into, keys);
    } catch (RuntimeException e) {
      throw new IOException(e.toString(), e);
    }
  }

  /**
   * The error for the task; an exception if its thread was interrupted. The type of the error does
   * not tell: clients of stores throw their interrupts as any exception, and some of their other
   * errors are {@code InterruptedIOException}.
   */
  private BlockFetchException failed(Exception cause) {
    boolean killed =
        Thread.currentThread().isInterrupted() || cause instanceof ClosedByInterruptException;
    if (killed && !(cause instanceof SocketTimeoutException)) {
      throw failures.interrupted("the copy of " + request.key());
    }
    if (cause instanceof ChecksumException) {
      counters.increment(CHECKSUM_FAILURES);
    }
    return failures.failure(request, partition, null, ReadPath.COPY, cause);
  }

  private void closeCopy() {
    if (copy != null) {
      try {
        copy.close();
      } catch (IOException e) {
        LOG.debug("The copy of {} was not closed", copy.index().key(), e);
      }
      copy = null;
    }
  }

  @Override
  public void close() {
    closeCopy();
    loaded.close();
  }
}
