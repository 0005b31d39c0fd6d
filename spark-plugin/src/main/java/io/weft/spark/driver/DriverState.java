package io.weft.spark.driver;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.AnnouncedFolders;
import io.weft.spark.config.Activation;
import io.weft.spark.config.PathSettings;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.shuffle.Fallbacks;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Function;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The driver's state: whether Weft is on, the addresses of executors and their last reports. Lost
 * executors stay in it, because other executors may still read their blocks on their host.
 *
 * <p>Thread-safe.
 */
public final class DriverState {
  private static final Logger LOG = LoggerFactory.getLogger(DriverState.class);

  private final Activation activation;
  private final SparkConf conf;
  private final Map<String, PeerAddress> peers = new ConcurrentHashMap<>();
  private final Map<String, ExecutorReport> reports = new ConcurrentHashMap<>();
  private final Map<String, String> remarks = new ConcurrentSkipListMap<>();
  private final Set<String> greeted = ConcurrentHashMap.newKeySet();
  private final Set<String> loggedPaths = ConcurrentHashMap.newKeySet();

  public DriverState(Activation activation, SparkConf conf) {
    this.activation = activation;
    this.conf = conf;
  }

  /** Whether Weft is on, and if not, why. */
  public Activation activation() {
    return activation;
  }

  /** The application's settings. */
  public SparkConf conf() {
    return conf;
  }

  /** The last report of every executor that ever sent one, by executor id. */
  public List<ExecutorReport> reports() {
    return reports.values().stream()
        .sorted(Comparator.comparing(ExecutorReport::executorId))
        .toList();
  }

  /** Warnings about executors, by executor id: the host and a sentence. */
  public Map<String, String> remarks() {
    return new TreeMap<>(remarks);
  }

  /** Shuffles left to Spark's sort shuffle, by reason. */
  public Map<String, Long> fallbacks() {
    return counts(WeftShuffleManager::fallbacks);
  }

  /** Feeds that go from host to host instead of GPU to GPU, by reason. */
  public Map<String, Long> hostFeeds() {
    return counts(WeftShuffleManager::hostFeeds);
  }

  /** Exchanges of batches on GPUs that go between hosts, by reason. */
  public Map<String, Long> hostExchanges() {
    return counts(WeftShuffleManager::hostExchanges);
  }

  private static Map<String, Long> counts(Function<WeftShuffleManager, Fallbacks> of) {
    return manager().map(of).map(Fallbacks::counts).orElse(Map.of());
  }

  /** Why Weft takes no more shuffles after too many failures, as a clause; empty if it does. */
  public Optional<String> failureRefusal() {
    return manager().flatMap(manager -> manager.failures().refusal());
  }

  /** Counts a failure of Weft; {@code what} names the executor and the error. */
  public static void shuffleFailed(String what) {
    manager().ifPresent(manager -> manager.failures().count(what));
  }

  private static Optional<WeftShuffleManager> manager() {
    SparkEnv env = SparkEnv.get();
    return env != null && env.shuffleManager() instanceof WeftShuffleManager manager
        ? Optional.of(manager)
        : Optional.empty();
  }

  /**
   * Returns the shuffles of a list that Spark has unregistered. Spark registers a shuffle before
   * its first map task and never reuses its number.
   */
  static List<Integer> ended(List<Integer> shuffles) {
    SparkEnv env = SparkEnv.get();
    if (env == null || !(env.mapOutputTracker() instanceof MapOutputTrackerMaster tracker)) {
      return List.of();
    }
    return shuffles.stream().filter(shuffle -> !tracker.containsShuffle(shuffle)).toList();
  }

  void greeted(String executorId) {
    greeted.add(executorId);
  }

  /** Whether the driver ever received a message of an executor's plugin. */
  boolean wasGreeted(String executorId) {
    return greeted.contains(executorId);
  }

  void announced(PeerAddress address) {
    peers.put(address.executorId(), address);
    AnnouncedFolders.add(address.bootId(), Path.of(address.folder()), address.token());
    LOG.info("Weft serves {}, {}", address, address.gpu());
    PathRules rules = PathSettings.rules(conf);
    for (PeerAddress other : peers.values()) {
      if (!other.executorId().equals(address.executorId())) {
        PathGroup.between(other, address, rules).forEach(this::logPath);
      }
    }
  }

  /** Logs a path once for all pairs in the same situation. */
  private void logPath(PathGroup path) {
    if (loggedPaths.add(path.toString())) {
      LOG.info("Between executors {} and similar pairs, {}", path.example(), path);
    }
  }

  /** Returns the paths between all executors that ever announced themselves, with reasons. */
  List<PathGroup> paths() {
    List<PeerAddress> executors =
        peers.values().stream().sorted(Comparator.comparing(PeerAddress::executorId)).toList();
    return PathGroup.of(executors, PathSettings.rules(conf));
  }

  /** Records a warning about an executor. Each warning is logged once per host. */
  void remarked(PeerAddress address, String remark) {
    if (remark != null) {
      boolean isNew = !remarks.containsValue(address.host() + ": " + remark);
      remarks.put(address.executorId(), address.host() + ": " + remark);
      if (isNew) {
        LOG.warn("Executor {} on {}: {}", address.executorId(), address.host(), remark);
      }
    }
  }

  /** Returns the address of an executor, or null if it has not announced itself. */
  PeerAddress peer(String executorId) {
    return peers.get(executorId);
  }

  /** Number of executors that ever announced themselves. */
  public int peers() {
    return peers.size();
  }

  void reported(ExecutorReport report) {
    reports.put(report.executorId(), report);
  }

  public void registerMetrics(MetricRegistry registry) {
    registry.register("executorsAnnounced", (Gauge<Integer>) peers::size);
    registry.register(
        "shuffleFailures",
        (Gauge<Integer>) () -> manager().map(ours -> ours.failures().count()).orElse(0));
    registry.register(
        "shufflesLeftToSpark",
        (Gauge<Long>) () -> fallbacks().values().stream().mapToLong(Long::longValue).sum());
  }
}
