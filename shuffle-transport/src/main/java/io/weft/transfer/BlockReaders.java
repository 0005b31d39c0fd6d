package io.weft.transfer;

import io.weft.catalog.BlockCatalog;
import io.weft.catalog.HostPeers;
import io.weft.catalog.PeerIndex;
import io.weft.catalog.ShuffleHold;
import io.weft.encryption.SealingKey;
import io.weft.memory.SharedArena;
import io.weft.metrics.ExchangeCounters;
import io.weft.peer.KnownPeers;
import io.weft.peer.PeerAddress;
import io.weft.peer.TransportMode;
import io.weft.tcp.PeerConnections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;

/**
 * Opens the readers of an executor and tracks the open ones. Does not own the objects that it is
 * created with. Thread-safe.
 */
public final class BlockReaders {
  private final String executorId;
  private final TransportMode mode;
  private final BlockCatalog catalog;
  private final HostPeers hostPeers;
  private final RemoteAccess access;
  private final PathLog paths;
  private final Set<ChunkReader> open = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /**
   * Creates the readers of an executor.
   *
   * @param executorId of this executor, whose blocks are read from the catalog
   * @param mode path for blocks of other executors
   * @param catalog of this executor's blocks
   * @param hostPeers the peers on this host
   * @param peers addresses of the other executors
   * @param client source of connections to them
   * @param arena memory for received blocks
   * @param limits of each reader and of all readers together
   * @param key of encrypted chunks; empty if encryption is off
   * @param counters of the exchange
   */
  public BlockReaders(
      String executorId,
      TransportMode mode,
      BlockCatalog catalog,
      HostPeers hostPeers,
      KnownPeers peers,
      PeerConnections client,
      SharedArena arena,
      TransferLimits limits,
      Optional<SealingKey> key,
      ExchangeCounters counters) {
    this.executorId = executorId;
    this.mode = mode;
    this.catalog = catalog;
    this.hostPeers = hostPeers;
    this.paths = new PathLog(mode, arena.names());
    this.access =
        new RemoteAccess(
            arena,
            client,
            peers,
            limits,
            new ReceiveBudget(limits.maxExecutorBytesInFlight()),
            counters,
            new FetchFailures(executorId),
            key);
  }

  /** Opens a reader. Does not block. The caller closes it. */
  public ChunkReader read(List<BlockRequest> requests, FetchListener listener) {
    requireOpen();
    ChunkReader reader = new ChunkReader(this, requests, listener);
    open.add(reader);
    return reader;
  }

  /** The number of open readers. */
  public int open() {
    return open.size();
  }

  /** The bytes that readers have requested over the network and not yet used. */
  public long receivingBytes() {
    return access.budget().bytes();
  }

  /** Makes every reader fail at its next chunk. Tasks still close their readers. */
  public void refuse() {
    closed = true;
  }

  void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the exchange of executor " + executorId + " is closed");
    }
  }

  void closed(ChunkReader reader) {
    open.remove(reader);
  }

  String executorId() {
    return executorId;
  }

  KnownPeers peers() {
    return access.peers();
  }

  FetchFailures failures() {
    return access.failures();
  }

  ShuffleHold holdOwn(int shuffleId) {
    return catalog.hold(shuffleId);
  }

  /** The peer's blocks in shared memory; empty if they are not read in place. */
  Optional<PeerIndex> onHost(PeerAddress peer) {
    Optional<PeerIndex> found = mode == TransportMode.TCP ? Optional.empty() : hostPeers.find(peer);
    paths.reads(peer, found.isPresent());
    return found;
  }

  LocalBlocks localBlocks(FetchListener listener, BiConsumer<BlockRequest, PeerAddress> remote) {
    return new LocalBlocks(
        access.failures(),
        listener,
        access.counters(),
        mode == TransportMode.AUTO ? remote : null,
        new OpenedChunks(access.arena(), access.key()));
  }

  RemoteBlocks remoteBlocks(FetchListener listener, boolean retained) {
    return new RemoteBlocks(access, listener, retained);
  }
}
