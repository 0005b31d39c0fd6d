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
 * Opens the readers of an executor and knows which are open. Owns nothing of what it is made of.
 * Thread-safe.
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
   * Readers of an executor.
   *
   * @param executorId whose blocks are read from the catalog
   * @param mode which way blocks of others come
   * @param catalog of own blocks
   * @param hostPeers the peers on this host
   * @param peers addresses of the others
   * @param client with connections to them
   * @param arena for memory to receive into
   * @param limits for each reader, and for all together
   * @param key of chunks that lie sealed; empty where none do
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

  /** How many readers are open. */
  public int open() {
    return open.size();
  }

  /** Bytes that they have asked other executors for over the network and not yet used. */
  public long receivingBytes() {
    return access.budget().bytes();
  }

  /** Lets no reader go on to another chunk. They are still to be closed by their tasks. */
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

  /** The peer's blocks in memory, if they are to be read there. */
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
