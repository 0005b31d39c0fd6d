package io.weft.spark;

import io.weft.shuffle.store.AnnouncedFolders;
import io.weft.spark.config.Activation;
import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.config.SettingsCheck;
import io.weft.spark.config.SpillMemory;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.driver.ActivityRecorder;
import io.weft.spark.driver.DriverAnswers;
import io.weft.spark.driver.DriverAnswers.KnownCopies;
import io.weft.spark.driver.DriverAnswers.TransferRendezvous;
import io.weft.spark.driver.DriverGarbageCollector;
import io.weft.spark.driver.DriverState;
import io.weft.spark.driver.DriverState.ExecutorEndListener;
import io.weft.spark.driver.EndedOutputsListener;
import io.weft.spark.driver.FailedStartMonitor;
import io.weft.spark.driver.OutputAdoptions;
import io.weft.spark.driver.OutputAdoptions.ShuffleStages;
import io.weft.spark.driver.RunningMapStages;
import io.weft.spark.driver.SettingsWarnings;
import io.weft.spark.driver.ShuffleFailureListener;
import io.weft.spark.driver.SurvivingOutputs;
import io.weft.spark.rapids.RapidsRole;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLosses;
import io.weft.spark.rendezvous.RendezvousService;
import io.weft.spark.rendezvous.StageRendezvous;
import io.weft.spark.rendezvous.StageRendezvous.StageListener;
import io.weft.spark.runtime.MessageCodec;
import io.weft.spark.runtime.Messages.Copied;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.spark.sql.WeftSessionExtensions;
import java.io.Serializable;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The driver side of the plugin. It decides whether Weft serves the application, configures Spark
 * for it, and answers executors.
 *
 * <p>{@link #receive} is called on the one thread that Spark has for messages to all plugins. It
 * must not block.
 */
final class WeftDriver implements DriverPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(WeftDriver.class);
  private static final String EXTENSIONS_KEY = "spark.sql.extensions";
  private static final String OUR_EXTENSIONS = WeftSessionExtensions.class.getName();
  private static final int KEY_BYTES = 8;

  private final DriverGarbageCollector garbage = new DriverGarbageCollector();
  private final StageRendezvous stages = new StageRendezvous();
  private final ExecutorLosses losses = new ExecutorLosses();
  private final RendezvousService<CliquePair> cliques = new RendezvousService<>(losses);
  private DriverState state;
  private OutputAdoptions adoptions;
  private DriverAnswers answers;
  private SparkContext spark;
  private String applicationKey;

  /** Null if map outputs are not copied. */
  private volatile SurvivingOutputs copies;

  /** Null if the UI is off. */
  private ActivityRecorder recorder;

  @Override
  public Map<String, String> init(SparkContext context, PluginContext plugin) {
    spark = context;
    SparkConf conf = context.conf();
    SettingsCheck.check(conf);
    Activation activation =
        RapidsRole.isAskedFor(conf) ? RapidsRole.decide(conf) : Activation.decide(conf);
    state = new DriverState(activation, conf);
    RunningMapStages mapStages = new RunningMapStages();
    adoptions =
        new OutputAdoptions(
            state,
            new ShuffleStages(
                DriverState::isRestorable, mapStages::isRunning, mapStages::firstTasks));
    answers =
        new DriverAnswers(
            state,
            stages,
            new TransferRendezvous(cliques, losses),
            adoptions,
            new Copies(),
            WeftSettings.DRIVER_COLLECT.get(conf) ? garbage::collect : executor -> {});
    if (activation.runs()) {
      SpillMemory.check(conf);
      setUp(conf, activation);
      SettingsWarnings.on(conf).forEach(LOG::warn);
      context.addSparkListener(new FailedStartMonitor(state, conf, () -> context.stop(1)));
      context.addSparkListener(new ExecutorEndListener(state));
      context.addSparkListener(new ShuffleFailureListener(state::shuffleFailed));
      if (conf.getBoolean("spark.shuffle.service.enabled", false)) {
        context.addSparkListener(new EndedOutputsListener());
      }
      if (AdoptionSettings.ENABLED.get(conf) || SurviveSettings.isOn(conf)) {
        context.addSparkListener(mapStages);
      }
      context.addSparkListener(new StageListener(stages));
      context.addSparkListener(new ExecutorLosses.Listener(losses, cliques));
    } else {
      LOG.warn("Weft stays off: {}", activation.inertReason().orElseThrow());
    }
    if (WeftSettings.UI_ENABLED.get(conf)) {
      recorder = ActivityRecorder.start(context, state);
    }
    return activation.runs() ? forExecutors(activation) : Map.of();
  }

  /** The copies, which do not exist before the application has an id. */
  private final class Copies implements KnownCopies {
    @Override
    public void copied(Copied copy) {
      SurvivingOutputs known = copies;
      if (known != null) {
        known.copied(copy);
      }
    }

    @Override
    public boolean isCopied(int shuffle, long map) {
      SurvivingOutputs known = copies;
      return known != null && known.isCopied(shuffle, map);
    }

    @Override
    public void notRead(int shuffle) {
      SurvivingOutputs known = copies;
      if (known != null) {
        known.notRead(shuffle);
      }
    }
  }

  private static void setUp(SparkConf conf, Activation activation) {
    if (activation.otherRole().isPresent()) {
      RapidsRole.setUp(conf);
      LOG.info("Weft {}: {}", WeftVersion.current(), activation.otherRole().get());
      return;
    }
    RapidsRole.advice(conf).ifPresent(LOG::warn);
    WeftShuffleManager.setUp(conf).ifPresent(LOG::info);
    String others = conf.get(EXTENSIONS_KEY, "");
    if (Arrays.stream(others.split(",")).map(String::trim).noneMatch(OUR_EXTENSIONS::equals)) {
      conf.set(EXTENSIONS_KEY, others.isBlank() ? OUR_EXTENSIONS : others + "," + OUR_EXTENSIONS);
      if (!others.isBlank()) {
        LOG.info(
            "{} stays as it is set, '{}'; Weft's rules run after those", EXTENSIONS_KEY, others);
      }
    }
    LOG.info("Weft {} carries this application's shuffles", WeftVersion.current());
  }

  private Map<String, String> forExecutors(Activation activation) {
    byte[] key = new byte[KEY_BYTES];
    new SecureRandom().nextBytes(key);
    applicationKey = HexFormat.of().formatHex(key);
    return Map.of(
        Activation.RUNS,
        "true",
        Activation.ACTIVE,
        Boolean.toString(activation.isActive()),
        Activation.APPLICATION_KEY,
        applicationKey,
        Activation.VERSION,
        WeftVersion.current());
  }

  @Override
  public void registerMetrics(String applicationId, PluginContext plugin) {
    state.registerMetrics(plugin.metricRegistry());
    SparkConf conf = spark.conf();
    if (state.activation().isActive() && SurviveSettings.isOn(conf)) {
      String application = applicationId + "-" + applicationKey;
      copies = new SurvivingOutputs(state, adoptions, conf, application);
      spark.addSparkListener(copies);
    }
  }

  @Override
  public Object receive(Object message) {
    Object answer = answers.to(MessageCodec.decode(message));
    return answer == null ? null : MessageCodec.encode((Serializable) answer);
  }

  @Override
  public void shutdown() {
    try {
      if (recorder != null) {
        recorder.close();
      }
    } finally {
      garbage.close();
      adoptions.close();
      if (copies != null) {
        copies.close();
      }
      AnnouncedFolders.sweep();
    }
  }
}
