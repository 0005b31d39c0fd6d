package io.weft.spark.driver;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.AnnouncedFolders;
import io.weft.spark.config.Activation;
import io.weft.spark.config.PathSettings;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.shuffle.Fallbacks;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.spark.ui.Activity;
import io.weft.spark.ui.Overview;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The driver's state: whether Weft is on, the addresses of executors, and what the Weft tab shows.
 * The addresses of the last {@link #MAX_ENDED} executors that ended stay, because running tasks may
 * still read their blocks on their host.
 *
 * <p>Thread-safe. Addresses of running executors are read without a lock.
 */
public final class DriverState {
  private static final Logger LOG = LoggerFactory.getLogger(DriverState.class);

  /** Maximum number of ended executors whose addresses stay. */
  static final int MAX_ENDED = 1000;

  /** Blocks of a shuffle whose sizes are added up, about 20 ms of the listener thread. */
  private static final long MAX_SIZED_BLOCKS = 2_000_000;

  private final Activation activation;
  private final SparkConf conf;
  private final Map<String, PeerAddress> peers = new ConcurrentHashMap<>();
  private final Activity activity = new Activity(this::host, System::currentTimeMillis);
  private final Set<String> greeted = ConcurrentHashMap.newKeySet();
  private final Set<String> loggedPaths = ConcurrentHashMap.newKeySet();

  private final Map<String, Ended> ended = recent();

  /** Remarks that were logged, with their hosts. */
  private final Map<String, Boolean> loggedRemarks = recent();

  /**
   * What stays of an ended executor.
   *
   * @param address null if it never announced itself
   * @param greeted whether its plugin ever sent a message
   */
  private record Ended(PeerAddress address, boolean greeted) {}

  public DriverState(Activation activation, SparkConf conf) {
    this.activation = activation;
    this.conf = conf;
  }

  /** Creates a map that keeps the last {@link #MAX_ENDED} entries. */
  private static <V> Map<String, V> recent() {
    return Collections.synchronizedMap(
        new LinkedHashMap<>() {
          private static final long serialVersionUID = 1L;

          @Override
          protected boolean removeEldestEntry(Map.Entry<String, V> eldest) {
            return size() > MAX_ENDED;
          }
        });
  }

  /** Whether Weft is on, and if not, why. */
  public Activation activation() {
    return activation;
  }

  /** The application's settings. */
  public SparkConf conf() {
    return conf;
  }

  /** Shuffles, executors and events, for the UI. */
  public Activity activity() {
    return activity;
  }

  /** The host of an executor, for the UI. */
  private String host(String executorId) {
    PeerAddress address = peer(executorId);
    return address == null ? "unknown host" : address.host();
  }

  /** What the Weft tab shows of the application as a whole. */
  public Overview overview() {
    String state =
        activation
            .inertReason()
            .map(reason -> "Weft stays off: " + reason)
            .or(activation::otherRole)
            .or(() -> failureRefusal().map(reason -> "Off for new shuffles: " + reason + "."))
            .orElse("On: SQL shuffles go through Weft.");
    Map<String, Map<String, Long>> reasons = new LinkedHashMap<>();
    reasons.put("Shuffles left to Spark's sort shuffle", counts(WeftShuffleManager::fallbacks));
    addIfAny(reasons, "Feeds that go from host to host instead of GPU to GPU", hostFeeds());
    addIfAny(reasons, "Exchanges of batches on GPUs that go between hosts", hostExchanges());
    return new Overview(
        WeftVersion.current(),
        state,
        activity.shuffles().total(),
        reasons,
        paths().stream().map(PathGroup::row).toList(),
        PathGroup.title(peers.size()),
        activity.executors().collectives());
  }

  private static void addIfAny(
      Map<String, Map<String, Long>> reasons, String title, Map<String, Long> counts) {
    if (!counts.isEmpty()) {
      reasons.put(title, counts);
    }
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
  public void shuffleFailed(String what) {
    activity.failed(what);
    boolean off = failureRefusal().isPresent();
    manager().ifPresent(manager -> manager.failures().count(what));
    if (!off) {
      failureRefusal().ifPresent(activity::switchedOff);
    }
  }

  /** Returns the route of a registered shuffle, once. */
  static Optional<RouteTaken> route(int shuffle) {
    return manager().flatMap(manager -> manager.routes().take(shuffle));
  }

  /**
   * Returns the sizes of a shuffle's partitions, as reported to Spark; empty if there are too many
   * blocks to add up.
   */
  static Optional<long[]> sizes(int shuffle, int partitions) {
    SparkEnv env = SparkEnv.get();
    if (env == null || !(env.mapOutputTracker() instanceof MapOutputTrackerMaster tracker)) {
      return Optional.empty();
    }
    Option<ShuffleStatus> status = tracker.shuffleStatuses().get(shuffle);
    return status.isEmpty()
        ? Optional.empty()
        // A copy, because Spark's scheduler needs the lock.
        : sizes(status.get().withMapStatuses(MapStatus[]::clone), partitions);
  }

  private static Optional<long[]> sizes(MapStatus[] outputs, int partitions) {
    if ((long) outputs.length * partitions > MAX_SIZED_BLOCKS) {
      return Optional.empty();
    }
    long[] sizes = new long[partitions];
    for (MapStatus output : outputs) {
      for (int p = 0; output != null && p < partitions; p++) {
        sizes[p] += output.getSizeForBlock(p);
      }
    }
    return Optional.of(sizes);
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

  /** The shuffles that are registered with Spark. */
  static Set<Integer> shuffles() {
    SparkEnv env = SparkEnv.get();
    if (env == null || !(env.mapOutputTracker() instanceof MapOutputTrackerMaster tracker)) {
      return Set.of();
    }
    Set<Integer> shuffles = new HashSet<>();
    CollectionConverters.asJava(tracker.shuffleStatuses().keys())
        .forEach(shuffle -> shuffles.add((Integer) shuffle));
    return shuffles;
  }

  synchronized void greeted(String executorId) {
    if (!ended.containsKey(executorId)) {
      greeted.add(executorId);
    }
  }

  /** Whether the driver received a message of an executor's plugin. */
  boolean wasGreeted(String executorId) {
    Ended known = ended.get(executorId);
    return known != null ? known.greeted() : greeted.contains(executorId);
  }

  void announced(PeerAddress address) {
    if (!add(address)) {
      return;
    }
    AnnouncedFolders.add(address.bootId(), Path.of(address.folder()), address.token());
    LOG.info("Weft serves {}, {}", address, address.gpu());
    logPaths(address);
  }

  /** Returns false if the executor has ended already. */
  private synchronized boolean add(PeerAddress address) {
    if (ended.containsKey(address.executorId())) {
      return false;
    }
    peers.put(address.executorId(), address);
    return true;
  }

  /** Drops the state of an executor. Does nothing if it has ended before. */
  private synchronized void ended(String executorId, String reason) {
    if (!ended.containsKey(executorId)) {
      // First here, then out of there: a look-up takes no lock.
      ended.put(executorId, new Ended(peers.get(executorId), greeted.contains(executorId)));
      peers.remove(executorId);
      greeted.remove(executorId);
      activity.ended(executorId, reason);
    }
  }

  /** Logs new paths, as long as there are few enough executors for the tab to show them. */
  private void logPaths(PeerAddress address) {
    if (peers.size() > PathGroup.MAX_EXECUTORS) {
      return;
    }
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

  /** Returns the paths between all running executors, with reasons. */
  List<PathGroup> paths() {
    List<PeerAddress> executors =
        peers.values().stream().sorted(Comparator.comparing(PeerAddress::executorId)).toList();
    return PathGroup.of(executors, PathSettings.rules(conf));
  }

  /** Records a warning about an executor. Each warning is logged once per host. */
  void remarked(PeerAddress address, String remark) {
    if (remark == null) {
      return;
    }
    warned(address, remark);
    if (loggedRemarks.put(address.host() + ": " + remark, true) == null) {
      LOG.warn("Executor {} on {}: {}", address.executorId(), address.host(), remark);
    }
  }

  private synchronized void warned(PeerAddress address, String remark) {
    if (peers.containsKey(address.executorId())) {
      activity.warned(address.executorId(), address.host(), remark);
    }
  }

  /**
   * Returns the address of an executor, or null if it has not announced itself or ended long ago.
   */
  PeerAddress peer(String executorId) {
    PeerAddress running = peers.get(executorId);
    if (running != null) {
      return running;
    }
    Ended known = ended.get(executorId);
    return known == null ? null : known.address();
  }

  /**
   * Returns the known addresses of executors, as an executor on a kernel needs them.
   *
   * @param bootId of the kernel
   */
  List<PeerAddress> find(String bootId, List<String> executorIds) {
    List<PeerAddress> found = new ArrayList<>(executorIds.size());
    for (String id : executorIds) {
      PeerAddress address = peer(id);
      if (address != null) {
        found.add(address.bootId().equals(bootId) ? address : address.withoutFolder());
      }
    }
    return found;
  }

  /** Whether an executor has announced itself and has not ended. */
  boolean isRunning(String executorId) {
    return peers.containsKey(executorId);
  }

  /** Whether map outputs of a shuffle that Spark removed may be used again. */
  public static boolean isRestorable(int shuffle) {
    return manager().filter(manager -> manager.isRestorable(shuffle)).isPresent();
  }

  /** Number of running executors that announced themselves. */
  public int peers() {
    return peers.size();
  }

  synchronized void reported(Report message) {
    activity.reported(message, ended.containsKey(message.report().executorId()));
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

  /**
   * Drops the state of executors that Spark removes. Called on Spark's listener thread, after
   * {@link FailedStartMonitor}, which needs that state.
   */
  public static final class ExecutorEndListener extends SparkListener {
    private final DriverState state;

    /** Creates a listener that changes this state. */
    public ExecutorEndListener(DriverState state) {
      this.state = state;
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
      state.ended(removed.executorId(), removed.reason());
    }
  }
}
