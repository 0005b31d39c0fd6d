package io.weft.shuffle;

import com.google.errorprone.annotations.CanIgnoreReturnValue;
import io.weft.device.probe.JfrModule;
import io.weft.memory.ArenaOptions;
import io.weft.memory.ArenaStatistics;
import io.weft.memory.SharedArena;
import io.weft.shuffle.ExchangeOptions.AdoptionOptions;
import io.weft.shuffle.ExchangeOptions.DiskEncryption;
import io.weft.shuffle.ExchangeOptions.MemoryOptions;
import io.weft.shuffle.ExchangeOptions.NetworkOptions;
import io.weft.shuffle.fetch.BlockReaders;
import io.weft.shuffle.fetch.BlockReaders.Copies;
import io.weft.shuffle.fetch.BlockReaders.FetchLimits;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.net.BlockClient;
import io.weft.shuffle.net.BlockServer;
import io.weft.shuffle.net.PeerCallClient;
import io.weft.shuffle.net.PeerCallServer;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerAddress.KnownPeers;
import io.weft.shuffle.peer.PeerDirectory;
import io.weft.shuffle.peer.Traffic;
import io.weft.shuffle.store.BlockCatalog;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.ChunkEncryptor;
import io.weft.shuffle.store.EncryptionKey;
import io.weft.shuffle.store.ExecutorFolder;
import io.weft.shuffle.store.FolderAdoption;
import io.weft.shuffle.store.HostPeers;
import io.weft.shuffle.store.HostRoot;
import io.weft.shuffle.store.IncomingOutput;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.shuffle.store.OutgoingOutput;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's access to the shuffle; one per JVM. It owns the executor's folder, the arena, the
 * block server and its connections. Thread-safe. Each map output writer and reader is for one task
 * thread.
 */
public final class ExecutorExchange implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorExchange.class);

  private final Closer closer;
  private final PeerAddress address;
  private final SharedArena arena;
  private final BlockCatalog catalog;
  private final HostPeers hostPeers;
  private final ExecutorFolder folder;
  private final BlockServer server;
  private final BlockReaders readers;
  private final PeerCallClient calls;
  private final ExchangeCounters counters;
  private final MemoryBudget budget;
  private final Duration fetchTimeout;
  private final IdleMemory idle;
  private final Optional<String> remark;
  private final boolean inMemory;
  private final AdoptionOptions adoption;
  private final boolean decrypts;
  private final Optional<OutputCopier> copier;

  private ExecutorExchange(ExchangeOptions options, PeerDirectory peers, Closer closer)
      throws IOException {
    this.closer = closer;
    this.counters = new ExchangeCounters();
    HostRoot root = chooseRoot(options.memory());
    budget = MemoryBudget.of(options.memory(), root, options.names());
    remark = remark(options, root, budget);
    remark.ifPresent(LOG::warn);
    inMemory = root.sharedMemory();
    folder =
        closer.add(
            ExecutorFolder.create(
                root,
                options.applicationKey(),
                options.executorId(),
                options.adoption().enabled()));
    folder.keepFor(options.adoption().keep());
    ArenaOptions arenaOptions = options.memory().arena(folder.path(), budget, options.names());
    arena = closer.add(SharedArena.open(arenaOptions));
    folder.onLoss(arena::abandonFiles);
    arena.onLostFolder(folder::restore);
    Optional<EncryptionKey> key = options.memory().encryption().map(DiskEncryption::key);
    adoption = options.adoption();
    decrypts = key.isPresent();
    hostPeers = closer.add(new HostPeers(options.executorId(), folder.incarnation(), counters));
    catalog =
        closer.add(
            new BlockCatalog(
                folder.path(),
                options.memory().localDirs(),
                arena,
                arenaOptions.segmentBytes(),
                options.traffic().checksums(),
                key.map(ChunkEncryptor::new),
                folder::isLeased,
                counters));
    server =
        closer.add(
            BlockServer.start(
                serverOptions(options, folder.incarnation()), catalog, arena, counters));
    BlockClient client = closer.add(new BlockClient(server.transport()));
    KnownPeers known = new KnownPeers(peers);
    calls = new PeerCallClient(known, client, options.network().fetchTimeout());
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
            options.copies().map(copies -> new Copies(copies.place(), copies.store())),
            counters);
    copier = options.copies().map(copies -> new OutputCopier(catalog, copies, counters));
    copier.ifPresent(
        copies -> {
          closer.add(copies);
          catalog.onOutput(copies::published);
        });
    closer.add((AutoCloseable) readers::refuse);
    fetchTimeout = options.network().fetchTimeout();
    Duration idleTime = options.memory().idleTime();
    idle = new IdleMemory(idleTime, arena, hostPeers, counters, readers::open, System::nanoTime);
    closer.add(new Maintenance(this::maintain));
    address = address(options, folder, server.port());
    if (JfrModule.PRESENT) {
      closer.add(TraceIdentity.start(address));
    }
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
   * @param peers directory of the addresses of other executors
   * @throws IOException if no folder can be created
   * @throws RuntimeException if no port can be bound
   */
  public static ExecutorExchange open(ExchangeOptions options, PeerDirectory peers)
      throws IOException {
    Closer closer = new Closer();
    try {
      return new ExecutorExchange(options, peers, closer);
    } catch (IOException | RuntimeException e) {
      closer.close();
      throw e;
    }
  }

  private static String describePrivate(ArenaOptions options) {
    return options.privateMemory().describe(options.segmentBytes());
  }

  private void maintain() {
    server.dropStalled(fetchTimeout);
    folder.restore();
    hostPeers.forgetUnreachable();
    readers.releaseUnused();
    catalog.reclaim();
    idle.giveBack();
    returnMemory();
    folder.sweep();
  }

  /** Returns memory of a container that is nearly full, the cheapest first. */
  private void returnMemory() {
    if (budget.countsMappedFiles() && budget.isShort()) {
      arena.dropPages();
      hostPeers.dropPages();
    }
    ArenaStatistics now = arena.statistics();
    boolean holds = now.memory().reservedBytes() + now.privateMemory().reservedBytes() > 0;
    // An executor that works from disks only keeps its segments: the kernel can drop their pages.
    if (inMemory && holds && budget.isShort()) {
      arena.freeIdle(Duration.ZERO);
    }
  }

  private static HostRoot chooseRoot(MemoryOptions memory) throws IOException {
    return HostRoot.choose(
        memory.folder().orElse(null),
        memory.localDirs(),
        memory.segmentBytes() + memory.marginBytes());
  }

  private static Optional<String> remark(
      ExchangeOptions options, HostRoot root, MemoryBudget budget) {
    List<String> remarks = new ArrayList<>();
    String advice =
        ". Set %s to a folder of a memory file system with enough room"
            .formatted(options.names().of("memoryFolder"));
    root.fallbackReason()
        .ifPresent(
            reason -> remarks.add("Blocks go to Spark's local folders because " + reason + advice));
    if (remarks.isEmpty() && !root.sharedMemory()) {
      boolean encrypted = options.memory().encryption().isPresent();
      remarks.add(
          (encrypted ? "Blocks are all encrypted in Spark's local folders" : "Blocks go to a disk")
              + " because "
              + root.path()
              + " is not in memory"
              + advice);
    }
    remarks.addAll(budget.remarks());
    return remarks.isEmpty() ? Optional.empty() : Optional.of(String.join(". ", remarks));
  }

  /** Why blocks are not in the configured place, or may not stay there; empty if they are. */
  public Optional<String> remark() {
    return remark;
  }

  /** Whether this executor's folder is in memory, not on a disk. */
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

  private static FetchLimits limits(ExchangeOptions options) {
    NetworkOptions network = options.network();
    return new FetchLimits(
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

  /** The address to announce to the other executors. */
  public PeerAddress address() {
    return address;
  }

  /**
   * Opens a map task's output with this number of partitions. The caller closes it.
   *
   * @throws IllegalStateException if the exchange is closed
   */
  public MapOutputWriter newMapOutput(BlockKey key, int partitions) {
    return catalog.newMapOutput(key, partitions);
  }

  /** The published map outputs of this executor, in no order. */
  public List<BlockKey> outputs() {
    return catalog.outputs();
  }

  /** Whether this executor has published a map output. */
  public boolean holds(BlockKey key) {
    return catalog.contains(key);
  }

  /**
   * Prepares to send a map output to another executor for migration. Reads all of it once.
   *
   * @return a buffer that owns nothing; its streams hold the output until they are closed
   * @throws IOException if this executor has not published it
   */
  public ManagedBuffer outgoing(BlockKey key) throws IOException {
    return OutgoingOutput.of(catalog, key);
  }

  /** Whether outputs of a shuffle that migrate to this executor are refused: it was removed. */
  public boolean wasRemoved(int shuffleId) {
    return catalog.wasRemoved(shuffleId);
  }

  /** Prepares to receive a migrated map output. The caller closes the receiver. */
  public IncomingOutput incoming(BlockKey key) {
    return new IncomingOutput(catalog, key, counters);
  }

  /**
   * Begins to adopt the map outputs of executors of the application that die on this host, until
   * the exchange is closed. Does nothing if the options have no adoption. Must be called once,
   * after this executor's address is announced.
   *
   * @param driver agrees on each adoption
   */
  public void adoptSiblings(AdoptionAgreement driver) {
    if (adoption.enabled()) {
      var how = new FolderAdoption.Options(adoption.verify(), adoption.inBudget(), decrypts);
      var folders = new FolderAdoption(catalog, arena, how);
      closer.add(new Adopter(folder, catalog, folders, driver, counters));
    }
  }

  /**
   * Copies a map output before the call returns, because this executor ends. Copies that were made
   * before count. The driver then sends readers to the copy.
   *
   * @return false if this exchange makes no copies
   * @throws IOException if it is not copied within the timeout of fetches
   */
  public boolean copyNow(BlockKey key) throws IOException {
    if (copier.isEmpty()) {
      return false;
    }
    copier.get().copyNow(key, fetchTimeout);
    return true;
  }

  /** Counts a migrated map output that was received into device memory. */
  public void countMigrated(long bytes) {
    counters.increment(ExchangeCounter.OUTPUTS_MIGRATED);
    counters.add(ExchangeCounter.BYTES_MIGRATED, bytes);
  }

  /**
   * Opens a reader for blocks of any executors. Does not block. The caller closes it.
   *
   * @param listener called on the reader's thread with the blocks read and their path
   * @throws IllegalStateException if the exchange is closed
   */
  public ChunkReader read(List<BlockRequest> requests, FetchListener listener) {
    return readers.read(requests, listener);
  }

  /** Calls to services of other executors. */
  public PeerCallClient calls() {
    return calls;
  }

  /**
   * Sets the service that answers calls of other executors until the exchange is closed.
   *
   * @param service must not block, because it runs on an event loop
   */
  public void serve(PeerCallServer.Service service) {
    server.services().serve(service);
  }

  /**
   * Frees this executor's outputs of a shuffle, at once or after the last reader, and releases its
   * leases on the shuffle at other executors. May delete many small files.
   */
  public void removeShuffle(int shuffleId) {
    hostPeers.removeShuffle(shuffleId);
    catalog.removeShuffle(shuffleId);
    readers.removeShuffle(shuffleId);
    copier.ifPresent(copies -> copies.removed(shuffleId));
    folder.sweep();
  }

  /** Frees one map output, at once or after its last reader. Does nothing if it is unknown. */
  public void removeMapOutput(BlockKey key) {
    catalog.removeMapOutputs(List.of(key));
  }

  /**
   * Adds a hook that runs when shared memory is full: see {@link SharedArena#onPressure}. Memory of
   * removed shuffles is reclaimed before it runs.
   */
  public void onPressure(Runnable hook) {
    arena.onPressure(hook);
  }

  /** Sets the action that runs when this executor has no work but uses memory; must not block. */
  public void onIdle(Runnable action) {
    idle.onIdle(action);
  }

  /**
   * The arena, for memory that is not for blocks. Callers free such memory before the exchange is
   * closed.
   */
  public SharedArena arena() {
    return arena;
  }

  /** Bytes by shuffle and by peer that were not reported yet. */
  public Traffic traffic() {
    return counters.traffic();
  }

  /** A snapshot of the counters and the state. */
  public ExchangeStatistics statistics() {
    return new ExchangeStatistics(
        counters.snapshot(),
        arena.statistics(),
        budget.bytes(),
        catalog.retiredBytes(),
        hostPeers.mappedSegments(),
        readers.open(),
        readers.receivingBytes(),
        server.openStreams(),
        server.servedBytes());
  }

  /**
   * Ends outstanding requests, stops the server, frees the memory and removes the folder. Open
   * readers and writers fail at their next call. Their memory stays mapped until they are closed.
   * Can be repeated.
   */
  @Override
  public void close() {
    closer.close();
  }

  /** Closes the parts of an exchange in the reverse order of their creation. Thread-safe. */
  static final class Closer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Closer.class);

    private final ConcurrentLinkedDeque<AutoCloseable> parts = new ConcurrentLinkedDeque<>();

    /** Takes ownership of a part. */
    @CanIgnoreReturnValue
    <T extends AutoCloseable> T add(T part) {
      parts.push(part);
      return part;
    }

    /** Closes every part once, even if closing another part fails. */
    @Override
    public void close() {
      AutoCloseable part = parts.poll();
      while (part != null) {
        close(part);
        part = parts.poll();
      }
    }

    private static void close(AutoCloseable part) {
      try {
        part.close();
      } catch (Exception e) {
        LOG.warn("Closing {} failed", part, e);
      }
    }
  }
}
