package io.weft.shuffle.fetch;

import io.weft.memory.SettingNames;
import io.weft.memory.SharedArena;
import io.weft.shuffle.fetch.BlockFetchException.FetchFailures;
import io.weft.shuffle.fetch.InFlightWindow.ReceiveBudget;
import io.weft.shuffle.fetch.LocalBlocks.LoadedChunks;
import io.weft.shuffle.fetch.LocalBlocks.NotInPlace;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.net.PeerConnection.PeerConnections;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.peer.PathRules.PathChoice;
import io.weft.shuffle.peer.PathRules.TransferPath;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerAddress.KnownPeers;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockCatalog;
import io.weft.shuffle.store.CopyStore;
import io.weft.shuffle.store.EncryptionKey;
import io.weft.shuffle.store.ExecutorFolder;
import io.weft.shuffle.store.HostPeers;
import io.weft.shuffle.store.PeerIndex;
import io.weft.shuffle.store.ShuffleHold;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens the readers of an executor and tracks the open ones. Does not own the objects that it is
 * created with. Thread-safe.
 */
public final class BlockReaders {
  private final String executorId;
  private final TransportMode mode;
  private final BlockCatalog catalog;
  private final HostPeers hostPeers;
  private final FetchContext context;
  private final Optional<Copies> copies;
  private final CopyIndexes copyIndexes = new CopyIndexes();
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
   * @param copies of map outputs whose executor has ended; empty if there are none
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
      FetchLimits limits,
      Optional<EncryptionKey> key,
      Optional<Copies> copies,
      ExchangeCounters counters) {
    this.executorId = executorId;
    this.copies = copies;
    this.mode = mode;
    this.catalog = catalog;
    this.hostPeers = hostPeers;
    this.paths = new PathLog(mode, arena.names());
    this.context =
        new FetchContext(
            arena,
            client,
            peers,
            limits,
            new ReceiveBudget(limits.maxExecutorBytesInFlight()),
            counters,
            new FetchFailures(executorId),
            key,
            new CompressionChoice(limits.compression()));
  }

  /** Opens a reader. Does not block. The caller closes it. */
  public ChunkReader read(List<BlockRequest> requests, FetchListener listener) {
    requireOpen();
    ChunkReader reader = new ChunkReader(this, requests, listener);
    open.add(reader);
    return reader;
  }

  /** Forgets what is known of a shuffle. */
  public void removeShuffle(int shuffleId) {
    context.compression().removeShuffle(shuffleId);
    copyIndexes.removeShuffle(shuffleId);
  }

  /** Frees the memory of closed readers whose threads have ended. Fast if there are none. */
  public void releaseUnused() {
    open.forEach(ChunkReader::releaseIfUnused);
  }

  /** The number of readers that have memory. */
  public int open() {
    return open.size();
  }

  /** The bytes that readers have requested over the network and not yet used. */
  public long receivingBytes() {
    return context.budget().bytes();
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

  /**
   * Copies of map outputs.
   *
   * @param place that requests name for blocks that only a copy has, with its writer
   */
  public record Copies(String place, CopyStore store) {
    private static final char SEPARATOR = '/';

    /**
     * The executor id that requests name for blocks in copies.
     *
     * @param writer id of the executor that wrote the copies
     */
    public static String source(String place, String writer) {
      return place + SEPARATOR + writer;
    }

    /** The writer that a request names; empty if its blocks are not in copies. */
    Optional<String> writer(String source) {
      String prefix = source(place, "");
      return source.startsWith(prefix)
          ? Optional.of(source.substring(prefix.length()))
          : Optional.empty();
    }
  }

  /** Whether the blocks of an executor are in copies. */
  boolean areCopies(String executor) {
    return copies.isPresent() && copies.get().writer(executor).isPresent();
  }

  CopiedBlocks copiedBlocks(FetchListener listener, boolean retained) {
    LoadedChunks loaded = new LoadedChunks(context.arena(), context.key());
    if (retained) {
      loaded.retainAll();
    }
    return new CopiedBlocks(
        copies.orElseThrow(),
        copyIndexes,
        context.failures(),
        listener,
        context.counters(),
        loaded);
  }

  KnownPeers peers() {
    return context.peers();
  }

  FetchFailures failures() {
    return context.failures();
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

  /** Whether blocks of peers on this host may come over the network instead. */
  boolean mayFetchInstead() {
    return mode == TransportMode.AUTO;
  }

  /** Logs that blocks of a peer on this host come over the network. */
  void fetchesInstead(PeerAddress peer, IOException reason) {
    paths.fetchesInstead(peer, reason);
  }

  LocalBlocks localBlocks(FetchListener listener, NotInPlace remote) {
    return new LocalBlocks(
        context.failures(),
        listener,
        context.counters(),
        mayFetchInstead() ? remote : null,
        new LoadedChunks(context.arena(), context.key()));
  }

  BlockFetcher remoteBlocks(FetchListener listener, ReadTrace trace, boolean retained) {
    return new BlockFetcher(context, listener, trace, retained);
  }

  /**
   * The objects that the readers of an executor share to fetch blocks over the network.
   *
   * @param arena memory for received blocks
   * @param client source of connections
   * @param peers addresses, which are forgotten when a peer does not answer
   * @param limits of each reader
   * @param budget of all readers
   * @param counters of the exchange
   * @param failures creates the exceptions
   * @param key of encrypted chunks; empty if encryption is off
   * @param compression of the requests
   */
  record FetchContext(
      SharedArena arena,
      PeerConnections client,
      KnownPeers peers,
      FetchLimits limits,
      ReceiveBudget budget,
      ExchangeCounters counters,
      FetchFailures failures,
      Optional<EncryptionKey> key,
      CompressionChoice compression) {}

  /** Logs how the blocks of other executors are read and why, once for each path. Thread-safe. */
  static final class PathLog {
    private static final Logger LOG = LoggerFactory.getLogger(PathLog.class);

    private final TransportMode mode;
    private final SettingNames names;
    private final Set<String> known = ConcurrentHashMap.newKeySet();
    private final Set<PathChoice> logged = ConcurrentHashMap.newKeySet();
    private final Set<String> notInPlace = ConcurrentHashMap.newKeySet();

    PathLog(TransportMode mode, SettingNames names) {
      this.mode = mode;
      this.names = names;
    }

    /** Logs the path to a peer once. Called by every reader; cheap after the first call. */
    void reads(PeerAddress peer, boolean inPlace) {
      if (known.add(peer.executorId() + "-" + peer.incarnation())) {
        PathChoice choice = choice(peer, inPlace);
        if (logged.add(choice)) {
          LOG.info("Blocks of {} and similar peers are read by {}", peer, choice);
        }
      }
    }

    /** Logs once per peer that some of its blocks cannot be read in place. */
    void fetchesInstead(PeerAddress peer, IOException reason) {
      if (notInPlace.add(peer.executorId() + "-" + peer.incarnation())) {
        LOG.warn(
            "Blocks of {} that cannot be read in place come over the network: {}",
            peer,
            reason.toString());
      }
    }

    PathChoice choice(PeerAddress peer, boolean inPlace) {
      if (mode == TransportMode.TCP) {
        return new PathChoice(TransferPath.TCP, names.of("mode") + " is tcp");
      }
      if (inPlace) {
        return new PathChoice(
            TransferPath.SHM, "it runs on this kernel, and its folder is visible here");
      }
      return new PathChoice(
          TransferPath.TCP,
          ExecutorFolder.currentBootId().equals(peer.bootId())
              ? "it runs on this kernel, but its folder is not visible here"
              : "it runs on another kernel");
    }
  }

  /**
   * The limits and options of a reader's requests.
   *
   * @param requestBytes about the bytes of one request
   * @param maxBytesInFlight limit of a reader for bytes that are requested and not yet used
   * @param maxPeerBytesInFlight the same limit for one peer
   * @param maxExecutorBytesInFlight the same limit for all readers; a reader without an outstanding
   *     request may exceed it by one request
   * @param checksums whether to request checksums
   * @param compression which codec peers may use
   * @param timeout a request without progress for this time fails
   */
  public record FetchLimits(
      long requestBytes,
      long maxBytesInFlight,
      long maxPeerBytesInFlight,
      long maxExecutorBytesInFlight,
      boolean checksums,
      Compression.Rule compression,
      Duration timeout) {}
}
