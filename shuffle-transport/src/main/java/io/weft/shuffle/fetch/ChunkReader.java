package io.weft.shuffle.fetch;

import io.weft.shuffle.fetch.BlockFetchException.FetchFailures;
import io.weft.shuffle.fetch.BlockFetchException.ReadPath;
import io.weft.shuffle.peer.LateLookupException;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.PeerIndex;
import io.weft.shuffle.store.ShuffleHold;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Iterates over the chunks of requested blocks. Blocks that are read in place come first, while
 * requests for the others are under way. Blocks of which only copies are left follow, then the
 * others as they arrive. Within a block, chunks come in the order in which the map task committed
 * them.
 *
 * <p>A chunk's bytes stay readable until the second {@link #next()} after it, or until {@link
 * #close()}. After {@link #retainAll()}, all bytes stay readable until {@link #close()}.
 *
 * <p>One thread at a time reads. It may be another thread than the one that closes the reader: some
 * operators read a task's rows on a thread of their own, which may outlive the task. If that thread
 * lives when another one closes the reader, the memory stays until it calls the reader again, which
 * throws an exception and frees the memory, or until it has ended. So no thread reads freed memory.
 *
 * <p>Waiting can be interrupted. It fails if a peer makes no progress within the timeout. After an
 * exception, only {@link #close()} may be called.
 */
public final class ChunkReader implements AutoCloseable {
  private final BlockReaders readers;
  private final CurrentChunk chunk = new CurrentChunk();

  /** The thread that read last, or null; a {@link Closed} after the end. */
  private final AtomicReference<Object> user = new AtomicReference<>();

  private final AtomicBoolean released = new AtomicBoolean();
  private final ReadTrace trace = ReadTrace.open();
  private ReadPlan plan;
  private List<BlockRequest> requests;
  private Runnable attached = () -> {};
  private boolean retained;
  private boolean failed;

  /**
   * The state of a closed reader.
   *
   * @param user the thread that frees the memory at its next call; null if it is freed
   */
  private record Closed(Thread user) {}

  ChunkReader(BlockReaders readers, List<BlockRequest> requests, FetchListener listener) {
    this.readers = readers;
    this.requests = List.copyOf(requests);
    this.plan = new ReadPlan(readers, listener, trace);
  }

  /**
   * Frees more memory together with that of the chunks. Must be called before the first {@link
   * #next()}.
   *
   * @param release called once, on any thread
   */
  public void attach(Runnable release) {
    attached = release;
  }

  /**
   * Makes the calling thread the one that reads. Must be called before bytes of a chunk are read;
   * {@link #next()} does it too. Costs a volatile read if this thread also read last.
   *
   * @throws IllegalStateException if the reader is closed
   */
  public void use() {
    if (user.get() != Thread.currentThread()) {
      takeOver(Thread.currentThread());
    }
  }

  private void takeOver(Thread self) {
    Object before = user.get();
    while (!(before instanceof Closed)) {
      if (user.compareAndSet(before, self)) {
        return;
      }
      before = user.get();
    }
    if (((Closed) before).user() == self) {
      release();
    }
    throw new IllegalStateException(
        "the reader is closed: thread "
            + self.getName()
            + " reads after the end of the partition or of its task");
  }

  /**
   * Moves to the next chunk.
   *
   * @return false if all blocks have been delivered
   * @throws BlockFetchException if a block is missing, its peer failed or the timeout passed
   * @throws UncheckedIOException if the addresses of peers are not known in time, or there is no
   *     memory to receive their blocks
   * @throws FetchInterruptedException if the thread is interrupted while it waits
   * @throws IllegalStateException if the reader or its exchange is closed, or an earlier call
   *     failed
   */
  public boolean next() throws BlockFetchException {
    requireOpen();
    if (failed) {
      // Users' code may catch the exception and ask again. Missing blocks are not the end.
      throw new IllegalStateException("the reader has failed, so its blocks are incomplete");
    }
    failed = true;
    boolean found = find();
    failed = false;
    return found;
  }

  private boolean find() throws BlockFetchException {
    trace.seek();
    if (requests != null) {
      begin();
    }
    BlockFetcher remote = plan.remote();
    if (remote != null) {
      remote.releasePrevious();
      remote.progress();
    }
    boolean found = plan.local().next(chunk);
    String path = found ? ReadTrace.IN_PLACE : ReadTrace.COPY;
    CopiedBlocks copied = plan.copied();
    if (!found && copied != null) {
      found = copied.next(chunk);
    }
    if (!found && plan.remote() != null) {
      path = ReadTrace.NETWORK;
      found = plan.remote().next(chunk);
    }
    if (!found) {
      trace.commit();
      return false;
    }
    trace.found(chunk, path, readers.executorId());
    return true;
  }

  /**
   * Keeps the memory of all chunks until {@link #close()}, for callers that return to them. Chunks
   * from the network and encrypted chunks then use that much memory of this executor. Close then
   * frees the memory at once on any thread, so the caller must know that no thread reads. Must be
   * called before the first {@link #next()}.
   */
  public void retainAll() {
    requireOpen();
    if (requests == null) {
      throw new IllegalStateException("chunks were read already");
    }
    retained = true;
    plan.retainAll();
  }

  private void requireOpen() {
    use();
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

  /**
   * Ends outstanding requests and frees all memory, at once or when the thread that reads has
   * noticed. Can be repeated.
   */
  @Override
  public void close() {
    Thread self = Thread.currentThread();
    Object before = user.get();
    while (!(before instanceof Closed)) {
      Thread reading = before != self && !retained ? (Thread) before : null;
      if (user.compareAndSet(before, new Closed(reading))) {
        // A living thread releases it at its next call, or maintenance after its end.
        if (reading == null || !reading.isAlive()) {
          release();
        }
        return;
      }
      before = user.get();
    }
    if (((Closed) before).user() == self) {
      release();
    }
  }

  /** Frees the memory if the reader was closed and the thread that read has ended. */
  void releaseIfUnused() {
    if (user.get() instanceof Closed closed && closed.user() != null && !closed.user().isAlive()) {
      release();
    }
  }

  /** Drops the requests too, because a closed reader may be referenced until its task ends. */
  private void release() {
    if (released.compareAndSet(false, true)) {
      attached.run();
      trace.commit();
      plan.close();
      plan = null;
      requests = null;
      attached = null;
      chunk.request = null;
      readers.closed(this);
    }
  }

  /** The current chunk of a reader. Reused for each chunk. For one thread. */
  static final class CurrentChunk {
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

  /**
   * Chooses the path to each block of a reader, and owns the holds and requests for it. For the
   * reader's thread.
   */
  static final class ReadPlan implements AutoCloseable {
    private final BlockReaders readers;
    private final FetchListener listener;
    private final ReadTrace trace;
    private final List<ShuffleHold> holds = new ArrayList<>();
    private final Map<Source, Route> routes = new HashMap<>();
    private final LocalBlocks local;
    private CopiedBlocks copied;
    private BlockFetcher remote;
    private boolean retained;

    /** One executor's blocks of one shuffle. */
    private record Source(String executorId, int shuffleId) {
      boolean holds(BlockRequest request) {
        return shuffleId == request.key().shuffleId() && executorId.equals(request.executorId());
      }
    }

    /**
     * The path to a source. The hold is null for the network; the peer is null for this executor.
     */
    private record Route(ShuffleHold hold, PeerAddress peer) {}

    /** Starts without blocks. */
    ReadPlan(BlockReaders readers, FetchListener listener, ReadTrace trace) {
      this.readers = readers;
      this.listener = listener;
      this.trace = trace;
      this.local = readers.localBlocks(listener, this::fetchInstead);
    }

    /** Keeps fetched and decrypted chunks until {@link #close()}. Other chunks stay in any case. */
    void retainAll() {
      retained = true;
      local.retainAll();
    }

    void addAll(List<BlockRequest> requests) throws BlockFetchException {
      Map<String, PeerAddress> peers = findPeers(requests);
      Source source = null;
      Route route = null;
      for (BlockRequest request : requests) {
        if (readers.areCopies(request.executorId())) {
          addCopied(request);
          continue;
        }
        // Requests are mostly sorted by executor.
        if (source == null || !source.holds(request)) {
          source = new Source(request.executorId(), request.key().shuffleId());
          route = routes.get(source);
        }
        if (route == null) {
          route = findRoute(request, peers.get(request.executorId()));
          routes.put(source, route);
        }
        if (route.hold() != null) {
          local.add(request, route.hold(), route.peer());
        } else {
          addRemote(request, route.peer());
        }
      }
    }

    private void addCopied(BlockRequest request) {
      if (copied == null) {
        copied = readers.copiedBlocks(listener, retained);
      }
      copied.add(request);
    }

    private void addRemote(BlockRequest request, PeerAddress peer) {
      if (remote == null) {
        remote = readers.remoteBlocks(listener, trace, retained);
      }
      remote.add(request, peer);
    }

    private void fetchInstead(BlockRequest request, PeerAddress peer, IOException reason) {
      readers.fetchesInstead(peer, reason);
      addRemote(request, peer);
    }

    /**
     * Looks up all other executors together. If that fails, the executors and their blocks may be
     * good, so no fetch failure is reported.
     */
    private Map<String, PeerAddress> findPeers(List<BlockRequest> requests) {
      Set<String> others = new HashSet<>();
      requests.forEach(request -> others.add(request.executorId()));
      others.removeIf(id -> id.equals(readers.executorId()) || readers.areCopies(id));
      try {
        return readers.peers().find(others);
      } catch (IOException e) {
        if (FetchFailures.isInterrupt(e)) {
          throw readers.failures().interrupted("the addresses of executors");
        }
        throw new LateLookupException(e);
      }
    }

    /** The peer is null for this executor, and for one that has ended. */
    private Route findRoute(BlockRequest request, PeerAddress peer) throws BlockFetchException {
      int shuffleId = request.key().shuffleId();
      if (request.executorId().equals(readers.executorId())) {
        return new Route(keep(readers.holdOwn(shuffleId)), null);
      }
      FetchFailures failures = readers.failures();
      if (peer == null) {
        IOException ended = new IOException("the executor has ended");
        throw failures.failure(request, request.startPartition(), null, ReadPath.UNKNOWN, ended);
      }
      try {
        Optional<PeerIndex> onHost = readers.onHost(peer);
        return new Route(onHost.isEmpty() ? null : keep(onHost.get().hold(shuffleId)), peer);
      } catch (IOException e) {
        if (FetchFailures.isInterrupt(e)) {
          throw failures.interrupted("shuffle " + shuffleId);
        }
        if (readers.mayFetchInstead()) {
          // Without a lease, for example because the peer's folder was deleted.
          readers.fetchesInstead(peer, e);
          return new Route(null, peer);
        }
        throw failures.failure(request, request.startPartition(), peer, ReadPath.SAME_HOST, e);
      }
    }

    private ShuffleHold keep(ShuffleHold hold) {
      holds.add(hold);
      return hold;
    }

    LocalBlocks local() {
      return local;
    }

    /** Releases everything. Bytes that still arrive are dropped. */
    @Override
    public void close() {
      if (remote != null) {
        remote.close();
      }
      local.close();
      if (copied != null) {
        copied.close();
      }
      holds.forEach(ShuffleHold::close);
    }

    /** The reader of copies, or null if no block is read from a copy. */
    CopiedBlocks copied() {
      return copied;
    }

    /** The fetcher, or null if no block comes over the network so far. */
    BlockFetcher remote() {
      return remote;
    }
  }
}
