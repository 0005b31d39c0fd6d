package io.weft.spark.runtime;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.symmetric.CollectiveMemoryCache;
import io.weft.collectives.symmetric.SegmentMemory;
import io.weft.collectives.symmetric.SymmetricOptions;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.collectives.ExecutorCollectives;
import io.weft.spark.columns.BufferPool;
import io.weft.spark.config.Activation;
import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.config.PathSettings;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.rapids.RapidsRole;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLosses.ExecutorLoss;
import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.runtime.Messages.Announce;
import io.weft.spark.runtime.Messages.AskLosses;
import io.weft.spark.runtime.Messages.CliqueCall;
import io.weft.spark.runtime.Messages.Hello;
import io.weft.spark.runtime.Messages.Losses;
import io.weft.spark.runtime.Messages.MemoryPressure;
import io.weft.spark.runtime.Messages.StageCall;
import io.weft.spark.runtime.Messages.ToDriver;
import io.weft.spark.runtime.Messages.Verdict;
import io.weft.spark.runtime.Messages.VersionMismatch;
import io.weft.spark.runtime.WeftMetrics.ExecutorStatistics;
import io.weft.spark.runtime.WeftMetrics.Metric;
import io.weft.spark.transfers.ExecutorTransfers;
import io.weft.spark.transfers.TransferDriver;
import io.weft.transfers.TransferOptions;
import io.weft.transfers.gpu.GpuRanks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The executor side of the plugin. It owns the exchange of its JVM from before the first task until
 * after the last. In local mode the driver is the executor.
 *
 * <p>Spark calls {@link #init} and {@link #shutdown} once each.
 */
public final class WeftExecutorPlugin implements ExecutorPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(WeftExecutorPlugin.class);
  private static final String COLLECTIVES_FOLDER = "collectives";

  private Optional<TraceRecording> trace = Optional.empty();
  private ExecutorExchange exchange;
  private ExecutorCollectives collectives;
  private ExecutorTransfers transfers;
  private ExecutorGpu gpu;
  private StatusReporter reporter;
  private EndedShufflePoller ended;

  @Override
  public void init(PluginContext context, Map<String, String> fromDriver) {
    if (!Boolean.parseBoolean(fromDriver.get(Activation.RUNS))) {
      return;
    }
    if (!Boolean.parseBoolean(fromDriver.get(Activation.ACTIVE))) {
      RapidsRole.misplaced(WeftExecutorPlugin.class.getClassLoader()).ifPresent(LOG::error);
    }
    ExecutorOptions options = new ExecutorOptions(SparkEnv.get(), context);
    greet(context, options.host(), fromDriver.get(Activation.VERSION));
    DriverPeers peers = DriverPeers.of(context);
    trace = TraceRecording.start(context.conf(), context.executorID());
    boolean begun = false;
    try {
      exchange =
          ExecutorExchange.open(options.build(fromDriver.get(Activation.APPLICATION_KEY)), peers);
      begin(context, options, peers);
      begun = true;
    } catch (IOException e) {
      throw new UncheckedIOException(
          "Weft cannot start on executor " + context.executorID() + ": " + e.getMessage(), e);
    } finally {
      if (!begun) {
        endTrace();
      }
    }
  }

  private void endTrace() {
    trace.ifPresent(TraceRecording::close);
    trace = Optional.empty();
  }

  /** Asks the driver whether this executor may join, before it allocates memory. */
  private static void greet(PluginContext context, String host, String driversVersion) {
    String ours = WeftVersion.current();
    String refusal = refusal(ask(context, new Hello(context.executorID(), host, ours)));
    if (refusal == null && !ours.equals(driversVersion)) {
      refusal = VersionMismatch.message(context.executorID(), host, ours, driversVersion);
    }
    if (refusal != null) {
      throw new IllegalStateException(refusal);
    }
  }

  /** Announces the exchange and this executor's GPU. */
  private PeerAddress announce(PluginContext context) {
    try {
      PeerAddress own = exchange.address().withGpu(OwnGpu.find(context));
      String refusal = refusal(ask(context, new Announce(own, exchange.remark().orElse(null))));
      if (refusal != null) {
        throw new IllegalStateException(refusal);
      }
      return own;
    } catch (RuntimeException e) {
      exchange.close();
      throw e;
    }
  }

  /** Throws if the task was killed. Spark does not interrupt killed tasks by default. */
  private static void stopIfKilled() {
    TaskContext task = TaskContext.get();
    if (task != null) {
      task.killTaskIfInterrupted();
    }
  }

  private void begin(PluginContext context, ExecutorOptions options, DriverPeers peers) {
    PeerAddress own = announce(context);
    PressureReport report = new PressureReport(context, System::nanoTime);
    exchange.onPressure(report);
    exchange.onIdle(report);
    exchange.arena().waiters().check(WeftExecutorPlugin::stopIfKilled);
    PathRules rules = PathSettings.rules(context.conf());
    CollectiveMemoryCache memory = collectiveMemory();
    CommunicatorFactory communicators = communicators(context, options, rules, false, memory);
    CommunicatorFactory besideNccl = communicators(context, options, rules, true, memory);
    GpuRanks gpus = OwnGpu.ranks(context.conf(), own, besideNccl);
    exchange
        .arena()
        .onIdle(
            time -> {
              // Zero means that host memory is short, for which memory of GPUs is no help.
              if (!time.isZero()) {
                gpus.freeIdle(time);
              }
            });
    collectives = collectives(context, options.host(), communicators, gpus, memory);
    transfers =
        transfers(
            context,
            new ExecutorTransfers.OwnResources(
                own,
                peers,
                communicators,
                exchange.arena(),
                OwnGpu.end(context.conf(), own, besideNccl)));
    gpu = OwnGpu.forTasks(context.conf(), own, exchange);
    Supplier<ExecutorStatistics> statistics =
        () ->
            new ExecutorStatistics(
                exchange.statistics(), collectives.statistics(), transfers.statistics());
    register(context.metricRegistry(), statistics);
    reporter = StatusReporter.start(context, options.host(), statistics, exchange.traffic());
    ended =
        new EndedShufflePoller(
                context,
                this::heldShuffles,
                shuffle -> SparkEnv.get().shuffleManager().unregisterShuffle(shuffle))
            .start();
    LentFolders.begin();
    WeftExecutor.start(exchange, context);
    exchange.adoptSiblings(
        new DriverAgreement(
            context,
            () -> SparkEnv.get().blockManager().blockManagerId(),
            AdoptionSettings.TIMEOUT.get(context.conf())));
    collectives.start();
    transfers.start();
    gpu.start();
  }

  /** Returns the shuffles with outputs on the host or the GPU. */
  private List<Integer> heldShuffles() {
    List<BlockKey> keys = new ArrayList<>(exchange.outputs());
    gpu.openExchange().ifPresent(device -> keys.addAll(device.catalog().keys()));
    return keys.stream().map(BlockKey::shuffleId).distinct().toList();
  }

  /** Creates the cache of symmetric memory, which gives memory back when it is short or idle. */
  private CollectiveMemoryCache collectiveMemory() {
    CollectiveMemoryCache memory = new CollectiveMemoryCache();
    exchange.arena().onPressure(memory::freeUnused);
    exchange.arena().onIdle(memory::freeIdle);
    return memory;
  }

  /**
   * Creates communicators. The shared memory of ranks is in the executor's folder, which is removed
   * if the executor dies.
   */
  private CommunicatorFactory communicators(
      PluginContext context,
      ExecutorOptions options,
      PathRules rules,
      boolean besideNccl,
      CollectiveMemoryCache memory) {
    if (WeftSettings.isDiskEncrypted(context.conf()) && !exchange.isInMemory()) {
      return new UnencryptedDiskRefusal(context.executorID(), exchange.address().folder());
    }
    return new HostCommunicators(
        overHosts(rules, besideNccl)
            .withFolder(Path.of(exchange.address().folder(), COLLECTIVES_FOLDER))
            .withSymmetric(SymmetricOptions.cached(SegmentMemory.of(exchange.arena()), memory))
            .withBindHost(options.bindHost()));
  }

  /**
   * Decides whether ranks may be on several hosts. Data between hosts is not encrypted.
   *
   * @param besideNccl whether it connects GPUs without NCCL, so that NCCL's permission applies
   */
  static HostOptions overHosts(PathRules rules, boolean besideNccl) {
    boolean network = !rules.encrypted() || (besideNccl && rules.unencryptedNccl());
    return HostOptions.defaults().withNetwork(network);
  }

  private static ExecutorTransfers transfers(
      PluginContext context, ExecutorTransfers.OwnResources resources) {
    SparkConf conf = context.conf();
    return new ExecutorTransfers(
        resources,
        new PluginTransferDriver(context),
        new TransferOptions(
            WeftSettings.TRANSFERS_BATCH_SIZE.get(conf),
            WeftSettings.TRANSFERS_BATCH_AGE.get(conf),
            WeftSettings.TRANSFERS_DEADLINE.get(conf),
            WeftSettings.TRANSFERS_IDLE.get(conf)));
  }

  private static ExecutorCollectives collectives(
      PluginContext context,
      String host,
      CommunicatorFactory communicators,
      GpuRanks gpus,
      CollectiveMemoryCache memory) {
    return new ExecutorCollectives(
        new ExecutorCollectives.Options(
            context.executorID(), host, WeftSettings.COLLECTIVES_TIMEOUT.get(context.conf())),
        communicators,
        gpus,
        call -> (RendezvousAnswer) MessageCodec.ask(context, new StageCall(call)),
        memory);
  }

  private static String refusal(Object answer) {
    return ((Verdict) answer).refusal();
  }

  private static Object ask(PluginContext context, ToDriver message) {
    try {
      return MessageCodec.ask(context, message);
    } catch (Exception e) {
      throw new IllegalStateException(
          "Executor %s asked the driver's Weft to join and got no answer: %s"
              .formatted(context.executorID(), e),
          e);
    }
  }

  private static void register(MetricRegistry registry, Supplier<ExecutorStatistics> statistics) {
    for (Metric metric : WeftMetrics.all()) {
      registry.register(metric.name(), (Gauge<Long>) () -> metric.read(statistics.get()));
    }
  }

  @Override
  public void shutdown() {
    if (exchange == null) {
      return;
    }
    try {
      WeftExecutor.stop();
      reporter.close();
      ended.close();
      gpu.closeExchange();
      transfers.close();
      gpu.close();
      collectives.close();
      exchange.close();
    } finally {
      endTrace();
    }
    BufferPool.freeIdle();
  }

  /**
   * Refuses to create communicators, because the data of ranks would be on disk without encryption
   * although disks must be encrypted. Immutable.
   *
   * @param executorId id of this executor
   * @param folder the folder on disk
   */
  record UnencryptedDiskRefusal(String executorId, String folder) implements CommunicatorFactory {
    @Override
    public Communicator create(Bootstrap bootstrap, CommunicatorOptions options) {
      throw new UnencryptedDiskException(executorId, "the shared data of ranks", folder);
    }
  }

  /** Sends the calls of transfers to the driver's plugin. Thread-safe. */
  static final class PluginTransferDriver implements TransferDriver {
    private final PluginContext context;

    PluginTransferDriver(PluginContext context) {
      this.context = context;
    }

    @Override
    public RendezvousAnswer ask(RendezvousCall<CliquePair> call) throws Exception {
      return (RendezvousAnswer) send(new CliqueCall(call));
    }

    @Override
    public List<ExecutorLoss> lossesSince(int known) throws Exception {
      return ((Losses) send(new AskLosses(known))).losses();
    }

    private Object send(ToDriver message) throws Exception {
      return MessageCodec.ask(context, message);
    }
  }

  /**
   * Reports to the driver that this executor's shared memory is full, or idle but in use, so that
   * it frees unused shuffles. The driver frees them later, if it can. The current allocation does
   * not wait for it.
   *
   * <p>Thread-safe. It never blocks. While memory stays full, the pause between two reports
   * doubles.
   */
  static final class PressureReport implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(PressureReport.class);
    private static final long FIRST_PAUSE_NANOS = Duration.ofSeconds(5).toNanos();
    private static final long LAST_PAUSE_NANOS = Duration.ofMinutes(5).toNanos();
    private static final long QUIET_NANOS = Duration.ofMinutes(1).toNanos();

    private final PluginContext context;
    private final LongSupplier clock;
    private long pauseNanos = FIRST_PAUSE_NANOS;
    private long reportedNanos;
    private long calledNanos;

    /**
     * Creates a report.
     *
     * @param clock nanoseconds, as of {@code System.nanoTime}
     */
    PressureReport(PluginContext context, LongSupplier clock) {
      this.context = context;
      this.clock = clock;
      this.calledNanos = clock.getAsLong() - QUIET_NANOS;
      this.reportedNanos = calledNanos;
    }

    /** Whether a report is due. After a minute without pressure, the first pause applies again. */
    private synchronized boolean isDue() {
      long now = clock.getAsLong();
      if (now - calledNanos >= QUIET_NANOS) {
        pauseNanos = FIRST_PAUSE_NANOS;
      }
      calledNanos = now;
      if (now - reportedNanos < pauseNanos) {
        return false;
      }
      reportedNanos = now;
      pauseNanos = Math.min(2 * pauseNanos, LAST_PAUSE_NANOS);
      return true;
    }

    @Override
    public void run() {
      if (!isDue()) {
        return;
      }
      try {
        MessageCodec.send(context, new MemoryPressure(context.executorID()));
      } catch (IOException | RuntimeException e) {
        LOG.debug("The report that memory is full did not reach the driver", e);
      }
    }
  }
}
