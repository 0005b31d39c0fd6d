package io.weft.shuffle;

import io.weft.memory.ArenaOptions;
import io.weft.memory.ArenaOptions.PrivateMemory;
import io.weft.memory.SettingNames;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.CopyStore;
import io.weft.shuffle.store.EncryptionKey;
import io.weft.shuffle.store.FolderAdoption.Verify;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;

/**
 * The options of an executor's exchange.
 *
 * @param applicationKey name of the application's folder; the same on all its executors and unique
 *     among applications
 * @param executorId Spark's executor id
 * @param version of Weft, announced to peers
 * @param memory budgets and folders
 * @param network addresses, limits and security
 * @param traffic checksums, compression and flow control
 * @param adoption of what executors leave that die on this host
 * @param copies of this executor's map outputs that outlive it; empty for none
 * @param names the names of these options in messages
 */
public record ExchangeOptions(
    String applicationKey,
    String executorId,
    String version,
    MemoryOptions memory,
    NetworkOptions network,
    TrafficOptions traffic,
    AdoptionOptions adoption,
    Optional<CopyOptions> copies,
    SettingNames names) {
  public ExchangeOptions {
    Objects.requireNonNull(applicationKey, "applicationKey");
    Objects.requireNonNull(executorId, "executorId");
    Objects.requireNonNull(version, "version");
    Objects.requireNonNull(memory, "memory");
    Objects.requireNonNull(network, "network");
    Objects.requireNonNull(traffic, "traffic");
    Objects.requireNonNull(adoption, "adoption");
    Objects.requireNonNull(copies, "copies");
    Objects.requireNonNull(names, "names");
  }

  /** Options under their own names, without adoption and copies. */
  public ExchangeOptions(
      String applicationKey,
      String executorId,
      String version,
      MemoryOptions memory,
      NetworkOptions network,
      TrafficOptions traffic) {
    this(
        applicationKey,
        executorId,
        version,
        memory,
        network,
        traffic,
        AdoptionOptions.OFF,
        Optional.empty(),
        SettingNames.OWN);
  }

  /**
   * Whether and how this executor adopts the map outputs of executors that die on its host, and
   * others those of this one.
   *
   * @param verify the chunks on disk whose checksums are verified before
   * @param inBudget whether adopted memory counts in this executor's budgets
   * @param keep how long what this executor leaves is kept for a later executor on its host, if no
   *     other one of the application runs there; zero for until the next sweep
   */
  public record AdoptionOptions(boolean enabled, Verify verify, boolean inBudget, Duration keep) {
    /** No adoption. */
    public static final AdoptionOptions OFF =
        new AdoptionOptions(false, Verify.NONE, false, Duration.ZERO);
  }

  /**
   * How this executor copies its map outputs, and finds those of executors that have ended.
   *
   * @param store of the copies; the exchange closes it
   * @param place that requests name for blocks that only a copy has, with its writer
   * @param maxBytesInFlight limit for the bytes of outputs that wait for their copy, at least 1;
   *     one output may exceed it
   * @param maxAge an output that waits longer is not copied
   * @param listener told of each copy
   */
  public record CopyOptions(
      CopyStore store,
      String place,
      long maxBytesInFlight,
      Duration maxAge,
      CopyListener listener) {}

  /** Learns of complete copies, of all executors. Thread-safe; must not throw. */
  public interface CopyListener {
    /** Whether a copy by some executor is known. Asked for outputs that others have written. */
    boolean isCopied(BlockKey key);

    /**
     * Called after an output was copied.
     *
     * @param own whether this executor has made the copy, and not another one
     * @param leaving whether this executor ends, so that readers should use the copy at once
     */
    void copied(BlockKey key, boolean own, boolean leaving);
  }

  /**
   * The network options of an executor's exchange.
   *
   * @param host name or address that peers connect to
   * @param bindHost address to bind to
   * @param port to listen on, or 0 for any port
   * @param cores that this executor may use, for the number of network threads; 0 for all cores
   * @param mode path for blocks of other executors
   * @param requestBytes about the bytes of one request to a peer, at least 1
   * @param maxBytesInFlight limit of a reader for bytes requested and not yet used, at least {@code
   *     requestBytes}; a larger chunk is fetched alone
   * @param maxExecutorBytesInFlight the same limit for all readers, at least 1; a reader without an
   *     outstanding request may exceed it by one request
   * @param fetchTimeout a request without progress for this time fails
   * @param conf Spark's configuration; the transport settings are those of its shuffle module
   * @param security authentication and encryption of connections
   */
  public record NetworkOptions(
      String host,
      String bindHost,
      int port,
      int cores,
      TransportMode mode,
      long requestBytes,
      long maxBytesInFlight,
      long maxExecutorBytesInFlight,
      Duration fetchTimeout,
      SparkConf conf,
      SecurityManager security) {
    public NetworkOptions {
      Objects.requireNonNull(host, "host");
      Objects.requireNonNull(mode, "mode");
      Objects.requireNonNull(conf, "conf");
      Objects.requireNonNull(security, "security");
      if (requestBytes < 1 || maxBytesInFlight < requestBytes) {
        throw new IllegalArgumentException(
            "requestBytes " + requestBytes + ", maxBytesInFlight " + maxBytesInFlight);
      }
      if (maxExecutorBytesInFlight < 1) {
        throw new IllegalArgumentException("maxExecutorBytesInFlight " + maxExecutorBytesInFlight);
      }
      if (fetchTimeout.isNegative() || fetchTimeout.isZero()) {
        throw new IllegalArgumentException("fetchTimeout " + fetchTimeout + " is not positive");
      }
    }
  }

  /**
   * The encryption of an executor's local folders.
   *
   * @param key of the application, the same on all its executors
   * @param memory private memory of this process for plain bytes while shared memory is full, for
   *     example chunks to be encrypted; at least two segments
   */
  public record DiskEncryption(EncryptionKey key, PrivateMemory memory) {
    public DiskEncryption {
      Objects.requireNonNull(key, "key");
      if (memory.bytes() < 1) {
        throw new IllegalArgumentException("encryption needs private memory, but its size is 0");
      }
    }
  }

  /**
   * The options for checksums, compression and flow control of blocks.
   *
   * @param checksums whether blocks from the network and from disk are verified
   * @param compression which codec for chunks on the network
   * @param maxPeerBytesInFlight limit of a reader for bytes requested from one peer and not yet
   *     used; a larger request is sent alone
   * @param maxServedBytes limit for the bytes of answers that are open and not fully sent
   * @param maxServedBytesPerPeer the same limit for one connection
   */
  public record TrafficOptions(
      boolean checksums,
      Compression.Rule compression,
      long maxPeerBytesInFlight,
      long maxServedBytes,
      long maxServedBytesPerPeer) {
    public TrafficOptions {
      Objects.requireNonNull(compression, "compression");
      if (maxPeerBytesInFlight < 1 || maxServedBytes < 1 || maxServedBytesPerPeer < 1) {
        throw new IllegalArgumentException(
            "maxPeerBytesInFlight "
                + maxPeerBytesInFlight
                + ", maxServedBytes "
                + maxServedBytes
                + ", maxServedBytesPerPeer "
                + maxServedBytesPerPeer);
      }
    }
  }

  /**
   * The memory options of an executor's exchange.
   *
   * @param folder for segments; empty to choose shared memory, or the first local folder without it
   * @param localDirs Spark's local folders, at least one, for segments beyond the memory budget
   * @param segmentBytes size of a segment, at least 64 KiB
   * @param memoryBytes budget in shared memory, or 0 for what {@link MemoryBudget} finds
   * @param diskBytes budget in the local folders
   * @param marginBytes to leave free in the shared memory file system
   * @param encryption of the local folders; empty if they are not encrypted
   * @param idleTime segments without data are deleted after this time, and unused segments of peers
   *     unmapped; zero to keep them
   * @param grant what the executor was given of its host's memory
   */
  public record MemoryOptions(
      Optional<Path> folder,
      List<Path> localDirs,
      long segmentBytes,
      long memoryBytes,
      long diskBytes,
      long marginBytes,
      Optional<DiskEncryption> encryption,
      Duration idleTime,
      MemoryGrant grant) {
    public MemoryOptions {
      Objects.requireNonNull(grant, "grant");
      localDirs = List.copyOf(localDirs);
      if (idleTime.isNegative()) {
        throw new IllegalArgumentException("idleTime " + idleTime + " is negative");
      }
      if (localDirs.isEmpty()) {
        throw new IllegalArgumentException("localDirs: at least one folder is needed");
      }
      if (segmentBytes < 64 << 10) {
        throw new IllegalArgumentException("segmentBytes: " + segmentBytes + " is below 64 KiB");
      }
      if (memoryBytes < 0 || diskBytes < 0 || marginBytes < 0) {
        throw new IllegalArgumentException(
            "negative budget: memory "
                + memoryBytes
                + ", disk "
                + diskBytes
                + ", margin "
                + marginBytes);
      }
    }

    /** Options of an executor with a whole host. */
    public MemoryOptions(
        Optional<Path> folder,
        List<Path> localDirs,
        long segmentBytes,
        long memoryBytes,
        long diskBytes,
        long marginBytes,
        Optional<DiskEncryption> encryption,
        Duration idleTime) {
      this(
          folder,
          localDirs,
          segmentBytes,
          memoryBytes,
          diskBytes,
          marginBytes,
          encryption,
          idleTime,
          MemoryGrant.WHOLE_HOST);
    }

    /** The options of the arena. */
    ArenaOptions arena(Path executorFolder, MemoryBudget budget, SettingNames names) {
      return new ArenaOptions(
          executorFolder,
          localDirs,
          segmentBytes,
          budget.bytes(),
          diskBytes,
          marginBytes,
          encryption.map(DiskEncryption::memory).orElse(PrivateMemory.NONE),
          budget,
          names);
    }
  }

  /**
   * What an executor was given of its host's memory.
   *
   * @param hostFraction the part of a memory file system up to which Weft fills it, above 0 and at
   *     most 1
   * @param otherBytes memory of this process beside the Java heap and shared memory
   * @param childBytes memory that processes started by this one may take, for example Python's
   * @param containerBytes memory of the container, if the cluster manager counts the resident
   *     memory of processes, mapped files included; empty if only control groups limit it
   */
  public record MemoryGrant(
      double hostFraction, long otherBytes, long childBytes, OptionalLong containerBytes) {
    /** All of the host, as far as control groups allow. */
    public static final MemoryGrant WHOLE_HOST = new MemoryGrant(1, 0, 0, OptionalLong.empty());

    public MemoryGrant {
      Objects.requireNonNull(containerBytes, "containerBytes");
      // Written so that NaN is refused too.
      if (!(hostFraction > 0 && hostFraction <= 1)) {
        throw new IllegalArgumentException(
            "hostFraction is " + hostFraction + "; allowed are values above 0, at most 1");
      }
      if (otherBytes < 0 || childBytes < 0 || containerBytes.orElse(1) < 1) {
        throw new IllegalArgumentException(
            "otherBytes %d, childBytes %d, containerBytes %s"
                .formatted(otherBytes, childBytes, containerBytes));
      }
    }
  }
}
