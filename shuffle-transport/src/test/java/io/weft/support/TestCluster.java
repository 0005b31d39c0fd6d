package io.weft.support;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.memory.ArenaOptions.PrivateMemory;
import io.weft.memory.SettingNames;
import io.weft.shuffle.ExchangeOptions;
import io.weft.shuffle.ExchangeOptions.AdoptionOptions;
import io.weft.shuffle.ExchangeOptions.CopyOptions;
import io.weft.shuffle.ExchangeOptions.DiskEncryption;
import io.weft.shuffle.ExchangeOptions.MemoryGrant;
import io.weft.shuffle.ExchangeOptions.MemoryOptions;
import io.weft.shuffle.ExchangeOptions.NetworkOptions;
import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.ExchangeStatistics;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.EncryptionKey;
import io.weft.shuffle.store.FolderAdoption.Verify;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import scala.Option;

/**
 * Several executors' exchanges in this process that find each other. Closing asserts that no
 * resource is left: no memory in use, no open reader or stream, no file.
 */
public final class TestCluster implements AutoCloseable {
  /** The segment size, so small that a few chunks fill a segment. */
  public static final long SEGMENT_BYTES = 1 << 20;

  private final Path root;
  private final Path local;
  private final Map<String, PeerAddress> addresses = new ConcurrentHashMap<>();
  private final Map<String, ExecutorExchange> exchanges = new ConcurrentHashMap<>();
  private TransportMode mode = TransportMode.AUTO;
  private Duration timeout = Duration.ofSeconds(30);
  private long requestBytes = 256 << 10;
  private long maxBytesInFlight = 1 << 20;
  private long maxExecutorBytesInFlight = 64 << 20;
  private long segmentBytes = SEGMENT_BYTES;
  private long memoryBytes = 256 << 20;
  private long diskBytes = 256 << 20;
  private Optional<DiskEncryption> encryption = Optional.empty();
  private MemoryGrant grant = MemoryGrant.WHOLE_HOST;
  private AdoptionOptions adoption = AdoptionOptions.OFF;
  private Optional<CopyOptions> copies = Optional.empty();
  private Duration idleTime = Duration.ofMinutes(1);
  private SparkConf conf = new SparkConf(false);
  private TrafficOptions traffic =
      new TrafficOptions(true, Compression.Rule.NONE, 1 << 20, 64 << 20, 32 << 20);

  public TestCluster(Path folder) throws IOException {
    root = Files.createDirectories(folder.resolve("shm"));
    local = Files.createDirectories(folder.resolve("local"));
  }

  public TestCluster mode(TransportMode newMode) {
    mode = newMode;
    return this;
  }

  public TestCluster timeout(Duration newTimeout) {
    timeout = newTimeout;
    return this;
  }

  public TestCluster window(long newRequestBytes, long newMaxBytesInFlight) {
    requestBytes = newRequestBytes;
    maxBytesInFlight = newMaxBytesInFlight;
    return this;
  }

  /** Sets the limit for all readers of an executor. */
  public TestCluster receiving(long newMaxExecutorBytesInFlight) {
    maxExecutorBytesInFlight = newMaxExecutorBytesInFlight;
    return this;
  }

  public TestCluster segments(long newSegmentBytes) {
    segmentBytes = newSegmentBytes;
    return this;
  }

  public TestCluster memory(long newMemoryBytes, long newDiskBytes) {
    memoryBytes = newMemoryBytes;
    diskBytes = newDiskBytes;
    return this;
  }

  public TestCluster grant(MemoryGrant newGrant) {
    grant = newGrant;
    return this;
  }

  /** Lets executors adopt what killed ones leave. */
  public TestCluster adopting(Verify verify, boolean inBudget) {
    adoption = new AdoptionOptions(true, verify, inBudget, Duration.ZERO);
    return this;
  }

  /** Sets how long memory without data is kept. */
  public TestCluster idle(Duration newIdleTime) {
    idleTime = newIdleTime;
    return this;
  }

  public TestCluster traffic(TrafficOptions newTraffic) {
    traffic = newTraffic;
    return this;
  }

  /** Gives executors a place for copies; empty for none. */
  public TestCluster copies(Optional<CopyOptions> newCopies) {
    copies = newCopies;
    return this;
  }

  /** Encrypts all bytes on disk, which are all bytes if the folder is not in memory. */
  public TestCluster encrypted() {
    return encryption(16, 64 << 20);
  }

  /** As {@link #encrypted}, with a key of zeros and this size of private memory. */
  public TestCluster encryption(int keyBytes, long privateBytes) {
    PrivateMemory memory = new PrivateMemory(privateBytes, 4, Duration.ofMillis(200));
    return encryption(new DiskEncryption(new EncryptionKey(new byte[keyBytes]), memory));
  }

  public TestCluster unencrypted() {
    encryption = Optional.empty();
    return this;
  }

  public TestCluster encryption(DiskEncryption newEncryption) {
    encryption = Optional.of(newEncryption);
    return this;
  }

  public TestCluster conf(SparkConf newConf) {
    conf = newConf;
    return this;
  }

  /** Returns the options of an executor with the cluster's current settings. */
  public ExchangeOptions options(String executorId) {
    SecurityManager security = new SecurityManager(conf, Option.empty(), null);
    return new ExchangeOptions(
        "app-0123abcd",
        executorId,
        "test",
        new MemoryOptions(
            Optional.of(root),
            List.of(local),
            segmentBytes,
            memoryBytes,
            diskBytes,
            0,
            encryption,
            idleTime,
            grant),
        new NetworkOptions(
            "localhost",
            "localhost",
            0,
            2,
            mode,
            requestBytes,
            maxBytesInFlight,
            maxExecutorBytesInFlight,
            timeout,
            conf,
            security),
        traffic,
        adoption,
        copies,
        SettingNames.OWN);
  }

  /** Opens an executor and announces it to the others. */
  public ExecutorExchange open(String executorId) throws IOException {
    ExecutorExchange exchange = ExecutorExchange.open(options(executorId), this::lookup);
    exchanges.put(executorId, exchange);
    addresses.put(executorId, exchange.address());
    return exchange;
  }

  /** Announces the address of an executor. */
  public void announce(PeerAddress address) {
    addresses.put(address.executorId(), address);
  }

  public Path root() {
    return root;
  }

  public Path local() {
    return local;
  }

  private Map<String, PeerAddress> lookup(Set<String> executorIds) {
    Map<String, PeerAddress> found = new HashMap<>(addresses);
    found.keySet().retainAll(executorIds);
    return found;
  }

  /** Waits until an exchange holds no memory. */
  public static void assertNothingHeld(ExecutorExchange exchange) {
    await("memory of " + exchange.address())
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(
            () -> {
              ExchangeStatistics now = exchange.statistics();
              assertThat(now.openReaders()).as("open readers").isZero();
              assertThat(now.receivingBytes()).as("bytes that readers wait for").isZero();
              assertThat(now.openStreams()).as("open streams").isZero();
              assertThat(now.servedBytes()).as("bytes held for peers").isZero();
              assertThat(now.arena().usedBytes()).as("arena bytes in use").isZero();
              assertThat(now.retiredBytes()).as("retired bytes").isZero();
            });
  }

  /** Removes a shuffle on all executors. */
  public void removeShuffle(int shuffleId) {
    exchanges.values().forEach(exchange -> exchange.removeShuffle(shuffleId));
    exchanges.values().forEach(exchange -> exchange.removeShuffle(shuffleId));
  }

  @Override
  public void close() throws IOException {
    for (int shuffle = 0; shuffle < 10; shuffle++) {
      removeShuffle(shuffle);
    }
    try {
      exchanges.values().forEach(TestCluster::assertNothingHeld);
    } finally {
      exchanges.values().forEach(ExecutorExchange::close);
    }
    assertThat(files(root)).as("files left in shared memory").isEmpty();
    assertThat(files(local)).as("files left in the local folder").isEmpty();
  }

  private static List<Path> files(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(file -> !file.equals(folder)).toList();
    }
  }
}
