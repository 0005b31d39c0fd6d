package io.weft.transfer;

import static io.weft.metrics.ExchangeCounter.CHECKSUM_FAILURES;
import static io.weft.metrics.ExchangeCounter.LOCAL_BLOCKS;
import static io.weft.metrics.ExchangeCounter.LOCAL_BYTES;
import static io.weft.metrics.ExchangeCounter.SAME_HOST_BLOCKS;
import static io.weft.metrics.ExchangeCounter.SAME_HOST_BYTES;

import io.weft.catalog.LocatedOutput;
import io.weft.catalog.MapOutput;
import io.weft.catalog.MappingFailedException;
import io.weft.catalog.ShuffleHold;
import io.weft.integrity.Checksum;
import io.weft.integrity.ChecksumException;
import io.weft.memory.Memory;
import io.weft.metrics.ExchangeCounters;
import io.weft.peer.PeerAddress;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.function.BiConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads blocks in place. The caller owns the holds. For one thread. */
final class LocalBlocks implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(LocalBlocks.class);

  private final FetchFailures failures;
  private final FetchListener listener;
  private final ExchangeCounters counters;
  private final BiConsumer<BlockRequest, PeerAddress> unmapped;
  private final OpenedChunks opened;
  private final ArrayDeque<Item> items = new ArrayDeque<>();

  /** A view of a chunk on disk that is verified or decrypted; null before the first one. */
  private ByteBuffer view;

  private BlockRequest request;
  private PeerAddress peer;
  private LocatedOutput output;
  private int partition;
  private int chunk;
  private int lastChunk;
  private long ownBlocks;
  private long ownBytes;
  private long peerBlocks;
  private long peerBytes;

  /** A request and the hold on its blocks. The peer is null for this executor's blocks. */
  private record Item(BlockRequest request, ShuffleHold hold, PeerAddress peer) {
    BlockPath path() {
      return peer == null ? BlockPath.OWN : BlockPath.SAME_HOST;
    }
  }

  /**
   * Starts without blocks.
   *
   * @param unmapped receives requests whose memory exists but cannot be mapped; null if that is an
   *     error
   * @param opened decrypts chunks and owns their memory; closed with this object
   */
  LocalBlocks(
      FetchFailures failures,
      FetchListener listener,
      ExchangeCounters counters,
      BiConsumer<BlockRequest, PeerAddress> unmapped,
      OpenedChunks opened) {
    this.failures = failures;
    this.listener = listener;
    this.counters = counters;
    this.unmapped = unmapped;
    this.opened = opened;
  }

  /** Keeps the memory of all chunks until {@link #close()}. */
  void retainAll() {
    opened.retainAll();
  }

  /** Adds blocks of this executor, or of a peer on this host if the peer is not null. */
  void add(BlockRequest added, ShuffleHold hold, PeerAddress peer) {
    items.add(new Item(added, hold, peer));
  }

  /** Moves to the next chunk. Returns false if there is none. */
  boolean next(Chunk current) throws BlockFetchException {
    opened.moveOn();
    while (chunk == lastChunk) {
      Item item = items.poll();
      if (item == null) {
        return false;
      }
      open(item);
    }
    MapOutput index = output.index();
    while (chunk >= index.firstChunk(partition + 1)) {
      partition++;
    }
    long address = output.address(chunk);
    if (index.checksum(chunk) != Checksum.NONE) {
      verify(index);
    }
    if (index.isSealed(chunk)) {
      address = open(index);
    }
    current.set(request, partition, index.rows(chunk), address, index.length(chunk));
    chunk++;
    return true;
  }

  /** Decrypts a chunk. Its authentication tags replace a checksum. */
  private long open(MapOutput index) throws BlockFetchException {
    ByteBuffer encrypted = viewOf(output.address(chunk), index.storedBytes(chunk));
    try {
      return opened.open(index.name(partition, chunk), encrypted, index.length(chunk));
    } catch (IOException e) {
      if (FetchFailures.isInterrupt(e)) {
        throw failures.interrupted(request.key().toString());
      }
      throw damaged(named(e));
    }
  }

  private IOException named(IOException cause) {
    String text = where() + ": " + cause.getMessage();
    return cause instanceof ChecksumException
        ? new ChecksumException(text)
        : new IOException(text, cause);
  }

  private String where() {
    return "chunk " + chunk + " (partition " + partition + "), on disk";
  }

  private ByteBuffer viewOf(long address, long bytes) {
    view = view == null ? ByteBuffer.allocateDirect(0) : view;
    Memory.aim(view, address, (int) bytes);
    return view;
  }

  /**
   * Verifies the checksum of a chunk on disk. Reading again would return the same pages, so a wrong
   * checksum is reported at once.
   */
  private void verify(MapOutput index) throws BlockFetchException {
    int found = Checksum.of(viewOf(output.address(chunk), index.storedBytes(chunk)));
    if (found != index.checksum(chunk)) {
      throw damaged(new ChecksumException(where(), index.checksum(chunk), found));
    }
  }

  private BlockFetchException damaged(IOException cause) {
    if (cause instanceof ChecksumException) {
      counters.increment(CHECKSUM_FAILURES);
    }
    BlockPath path = peer == null ? BlockPath.OWN : BlockPath.SAME_HOST;
    return failures.failure(request, partition, peer, path, cause);
  }

  private void open(Item item) throws BlockFetchException {
    LocatedOutput found = find(item);
    if (found == null) {
      return;
    }
    output = found;
    request = item.request();
    peer = item.peer();
    partition = request.startPartition();
    MapOutput index = output.index();
    chunk = index.firstChunk(partition);
    lastChunk = index.firstChunk(request.endPartition());
    count(item, index.blocks(partition, request.endPartition()));
  }

  /** Returns null if the request is fetched over the network instead. */
  private LocatedOutput find(Item item) throws BlockFetchException {
    BlockRequest wanted = item.request();
    try {
      LocatedOutput found = item.hold().output(wanted.key());
      if (wanted.endPartition() > found.index().partitions()) {
        throw new IOException("it has " + found.index().partitions() + " partitions");
      }
      return found;
    } catch (IOException e) {
      if (FetchFailures.isInterrupt(e)) {
        throw failures.interrupted(wanted.key().toString());
      }
      if (e instanceof MappingFailedException && unmapped != null) {
        LOG.warn("{} of {} comes over the network instead: {}", wanted.key(), item.peer(), e);
        unmapped.accept(wanted, item.peer());
        return null;
      }
      throw failures.failure(wanted, wanted.startPartition(), item.peer(), item.path(), e);
    }
  }

  private void count(Item item, int blocks) {
    long bytes = output.index().bytes(request.startPartition(), request.endPartition());
    if (item.path() == BlockPath.OWN) {
      listener.local(blocks, bytes);
      ownBlocks += blocks;
      ownBytes += bytes;
    } else {
      listener.sameHost(blocks, bytes);
      peerBlocks += blocks;
      peerBytes += bytes;
    }
  }

  /**
   * Frees memory and updates the counters of the exchange, once per reader because per block is
   * slow.
   */
  @Override
  public void close() {
    opened.close();
    counters.add(LOCAL_BLOCKS, ownBlocks);
    counters.add(LOCAL_BYTES, ownBytes);
    counters.add(SAME_HOST_BLOCKS, peerBlocks);
    counters.add(SAME_HOST_BYTES, peerBytes);
  }
}
