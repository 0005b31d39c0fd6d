package io.weft.exchange;

import io.weft.catalog.BlockCatalog;
import io.weft.catalog.BlockKey;
import io.weft.catalog.HostPeers;
import io.weft.catalog.MapOutputWriter;
import io.weft.encryption.ChunkSealer;
import io.weft.encryption.SealingKey;
import io.weft.host.ExecutorFolder;
import io.weft.host.HostRoot;
import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.metrics.ExchangeCounter;
import io.weft.metrics.ExchangeCounters;
import io.weft.migration.IncomingOutput;
import io.weft.migration.OutgoingOutput;
import io.weft.peer.KnownPeers;
import io.weft.peer.PeerAddress;
import io.weft.peer.PeerDirectory;
import io.weft.tcp.BlockClient;
import io.weft.tcp.BlockServer;
import io.weft.tcp.PeerCalls;
import io.weft.tcp.PeerServices;
import io.weft.transfer.BlockReaders;
import io.weft.transfer.BlockRequest;
import io.weft.transfer.ChunkReader;
import io.weft.transfer.FetchListener;
import io.weft.transfer.TransferLimits;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's end of all exchanges: one per JVM. It owns the executor's folder, the arena, the
 * block server and its connections. Thread-safe; map output writers and readers are each for one
 * task thread.
 */
public final class ExecutorExchange implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorExchange.class);

  /** A job that spills will do so again soon; one that is over should not keep the disk. */
  private static final Duration DISK_KEPT = Duration.ofMinutes(1);

  private final Closing closing;
  private final PeerAddress address;
  private final SharedArena arena;
  private final BlockCatalog catalog;
  private final HostPeers hostPeers;
  private final ExecutorFolder folder;
  private final BlockServer server;
  private final BlockReaders readers;
  private final PeerCalls calls;
  private final ExchangeCounters counters;
  private final long memoryBudgetBytes;
  private final Duration fetchTimeout;
  private final Optional<String> remark;
  private final boolean inMemory;

  private ExecutorExchange(ExchangeOptions options, PeerDirectory peers, Closing closing)
      throws IOException {
    this.closing = closing;
    this.counters = new ExchangeCounters();
    HostRoot root = chooseRoot(options.memory());
    remark = remark(options.memory(), root);
    remark.ifPresent(LOG::warn);
    inMemory = root.sharedMemory();
    folder =
        closing.add(ExecutorFolder.create(root, options.applicationKey(), options.executorId()));
    ArenaOptions arenaOptions = options.memory().arena(folder.path(), root, options.names());
    arena = closing.add(SharedArena.open(arenaOptions));
    memoryBudgetBytes = arenaOptions.memoryBytes();
    Optional<SealingKey> key = options.memory().encryption().map(DiskEncryption::key);
    hostPeers = closing.add(new HostPeers(options.executorId(), folder.incarnation(), counters));
    catalog =
        closing.add(
            new BlockCatalog(
                folder.path(),
                options.memory().localDirs(),
                arena,
                arenaOptions.segmentBytes(),
                options.traffic().checksums(),
                key.map(ChunkSealer::new),
                folder.leases()::anyLiving,
                counters));
    server =
        closing.add(
            BlockServer.start(
                serverOptions(options, folder.incarnation()), catalog, arena, counters));
    BlockClient client = closing.add(new BlockClient(server.transport()));
    KnownPeers known = new KnownPeers(peers);
    calls = new PeerCalls(known, client, options.network().fetchTimeout());
    readers =
        new BlockReaders(
            options.executorId(),
            options.network().mode(),
            catalog,
            hostPeers,
            known,
            client,
            arena,
            limits(options),
            key,
            counters);
    closing.add((AutoCloseable) readers::refuse);
    fetchTimeout = options.network().fetchTimeout();
    closing.add(new Upkeep(this::keepUp));
    address = address(options, folder, server.port());
    LOG.info(
        "Exchange of {} opened in {} with {} bytes of memory in segments of {}{}",
        address,
        folder.path(),
        arenaOptions.memoryBytes(),
        arenaOptions.segmentBytes(),
        key.isPresent() ? ", " + describePrivate(arenaOptions) : "");
  }

  /**
   * Creates the executor's folder and arena and starts its block server.
   *
   * @param peers asked for the addresses of other executors when their blocks are first wanted
   * @throws IOException if no folder can be created
   * @throws RuntimeException if no port can be bound
   */
  public static ExecutorExchange open(ExchangeOptions options, PeerDirectory peers)
      throws IOException {
    Closing closing = new Closing();
    try {
      return new ExecutorExchange(options, peers, closing);
    } catch (IOException | RuntimeException e) {
      closing.close();
      throw e;
    }
  }

  private static String describePrivate(ArenaOptions options) {
    return options.privateMemory().describe(options.segmentBytes());
  }

  private void keepUp() {
    server.dropStalled(fetchTimeout);
    catalog.reclaim();
    arena.freeIdle(DISK_KEPT);
    folder.sweep();
  }

  private static HostRoot chooseRoot(MemoryOptions memory) throws IOException {
    return HostRoot.choose(
        memory.folder().orElse(null),
        memory.localDirs(),
        memory.segmentBytes() + memory.marginBytes());
  }

  private static Optional<String> remark(MemoryOptions memory, HostRoot root) {
    boolean onDisk = memory.encryption().isPresent() && !root.sharedMemory();
    return root.fallbackReason()
        .map(reason -> "Blocks go to Spark's local folders because " + reason)
        .or(
            () ->
                onDisk
                    ? Optional.of(
                        "Blocks are all encrypted in Spark's local folders because "
                            + root.path()
                            + " is not in memory")
                    : Optional.empty());
  }

  /** Why blocks are not where they were asked to be, as a sentence; empty if they are. */
  public Optional<String> remark() {
    return remark;
  }

  /** Whether this executor's folder is in memory rather than on a disk. */
  public boolean isInMemory() {
    return inMemory;
  }

  private static BlockServer.Options serverOptions(ExchangeOptions options, String incarnation) {
    NetworkOptions network = options.network();
    return new BlockServer.Options(
        options.executorId(),
        incarnation,
        options.applicationKey(),
        network.bindHost(),
        network.port(),
        network.cores(),
        options.traffic().maxServedBytes(),
        options.traffic().maxServedBytesPerPeer(),
        network.fetchTimeout(),
        network.conf(),
        network.security());
  }

  private static TransferLimits limits(ExchangeOptions options) {
    NetworkOptions network = options.network();
    return new TransferLimits(
        network.requestBytes(),
        network.maxBytesInFlight(),
        options.traffic().maxPeerBytesInFlight(),
        network.maxExecutorBytesInFlight(),
        options.traffic().checksums(),
        options.traffic().compression(),
        network.fetchTimeout());
  }

  private static PeerAddress address(ExchangeOptions options, ExecutorFolder folder, int port) {
    return new PeerAddress(
        options.executorId(),
        folder.incarnation(),
        options.network().host(),
        port,
        folder.path().toString(),
        folder.token(),
        folder.bootId(),
        options.version());
  }

  /** What to announce to the other executors. */
  public PeerAddress address() {
    return address;
  }

  /**
   * Opens a map task's output of so many partitions. The caller closes it.
   *
   * @throws IllegalStateException if the exchange is closed
   */
  public MapOutputWriter newMapOutput(BlockKey key, int partitions) {
    return catalog.newMapOutput(key, partitions);
  }

  /** The map outputs published here now, in no order. */
  public List<BlockKey> outputs() {
    return catalog.outputs();
  }

  /** Whether a map output is published here now. */
  public boolean holds(BlockKey key) {
    return catalog.contains(key);
  }

  /**
   * Prepares a map output to be sent to an executor that takes it over. Reads it once.
   *
   * @return a buffer that owns nothing; streams made of it keep the output until they are closed
   * @throws IOException if it is not published here
   */
  public ManagedBuffer outgoing(BlockKey key) throws IOException {
    return OutgoingOutput.of(catalog, key);
  }

  /** Prepares to take over a map output that another executor sends. The caller closes it. */
  public IncomingOutput incoming(BlockKey key) {
    return new IncomingOutput(catalog, key, counters);
  }

  /** Counts a map output that was taken over into memory of a device. */
  public void countAdopted(long bytes) {
    counters.increment(ExchangeCounter.OUTPUTS_ADOPTED);
    counters.add(ExchangeCounter.BYTES_ADOPTED, bytes);
  }

  /**
   * Opens a reader over some blocks, of any executors. Does not block. The caller closes it.
   *
   * @param listener told on the reader's thread what was read by which way
   * @throws IllegalStateException if the exchange is closed
   */
  public ChunkReader read(List<BlockRequest> requests, FetchListener listener) {
    return readers.read(requests, listener);
  }

  /** Questions to other executors that are for no block. */
  public PeerCalls calls() {
    return calls;
  }

  /**
   * Answers the questions of other executors from now on, until the exchange is closed.
   *
   * @param service must not block, as it is called on an event loop
   */
  public void serve(PeerServices.Service service) {
    server.services().serve(service);
  }

  /**
   * Frees a shuffle's outputs here, at once where nobody reads them, else when the last reader is
   * done, and lets go of what this executor keeps of it at others. May delete many small files.
   */
  public void removeShuffle(int shuffleId) {
    hostPeers.removeShuffle(shuffleId);
    catalog.removeShuffle(shuffleId);
    folder.sweep();
  }

  /** Frees one map output, as {@link #removeShuffle} does. Does nothing if it is unknown. */
  public void removeMapOutput(BlockKey key) {
    catalog.removeMapOutput(key);
  }

  /**
   * Adds a hook for when shared memory is full: see {@link SharedArena#onPressure}. Memory of
   * removed shuffles is reclaimed before it is called.
   */
  public void onPressure(Runnable hook) {
    arena.onPressure(hook);
  }

  /**
   * The arena, for memory that is no block's. Whoever allocates there frees it before the exchange
   * is closed.
   */
  public SharedArena arena() {
    return arena;
  }

  /** Counters and state now. */
  public ExchangeStatistics statistics() {
    return new ExchangeStatistics(
        counters.snapshot(),
        arena.statistics(),
        memoryBudgetBytes,
        catalog.retiredBytes(),
        hostPeers.mappedSegments(),
        readers.open(),
        readers.receivingBytes(),
        server.openStreams(),
        server.servedBytes());
  }

  /**
   * Ends transfers, stops the server, frees the memory and removes the folder. Readers and writers
   * that are still open fail at their next call; what they look at stays mapped until they are
   * closed. Can be repeated.
   */
  @Override
  public void close() {
    closing.close();
  }
}
