package io.weft.spark.runtime;

import io.weft.shuffle.ExchangeOptions;
import io.weft.shuffle.ExchangeOptions.AdoptionOptions;
import io.weft.shuffle.ExchangeOptions.CopyListener;
import io.weft.shuffle.ExchangeOptions.CopyOptions;
import io.weft.shuffle.ExchangeOptions.DiskEncryption;
import io.weft.shuffle.ExchangeOptions.MemoryOptions;
import io.weft.shuffle.ExchangeOptions.NetworkOptions;
import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.EncryptionKey;
import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.config.ContainerMemory;
import io.weft.spark.config.MemorySettings;
import io.weft.spark.config.PathSettings.OptionNames;
import io.weft.spark.config.SpillMemory;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.runtime.Messages.AskCopied;
import io.weft.spark.runtime.Messages.Copied;
import io.weft.spark.runtime.Messages.CopyKnown;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/** Builds the exchange's options from the settings and from Spark's data about this executor. */
final class ExecutorOptions {
  private static final String DRIVER = "driver";

  private static final Logger LOG = LoggerFactory.getLogger(ExecutorOptions.class);

  private final SparkEnv env;
  private final PluginContext context;
  private final SparkConf conf;
  private final String executorId;

  ExecutorOptions(SparkEnv env, PluginContext context) {
    this.env = env;
    this.context = context;
    this.conf = context.conf();
    this.executorId = context.executorID();
  }

  /**
   * Returns the host by which other executors reach this one. In local mode Spark does not know it
   * yet, and no executor asks for it.
   */
  String host() {
    BlockManagerId id = env.blockManager().blockManagerId();
    return id == null ? conf.get("spark.driver.host", "localhost") : id.host();
  }

  /**
   * Returns the address to listen on. An executor starts with an address that it can bind. A
   * driver, the executor of local mode, may have a name that works only from other hosts.
   */
  String bindHost() {
    return executorId.equals(DRIVER) ? conf.get("spark.driver.bindAddress", host()) : host();
  }

  /** Builds the options of an application, with the random key that the driver chose. */
  ExchangeOptions build(String applicationKey) {
    String application = conf.get("spark.app.id", "local") + "-" + applicationKey;
    return new ExchangeOptions(
        application,
        executorId,
        WeftVersion.current(),
        memory(),
        network(),
        traffic(),
        executorId.equals(DRIVER) ? AdoptionOptions.OFF : AdoptionSettings.of(conf),
        copies(application),
        OptionNames.settings());
  }

  /** Without the place of copies, the executor works as if copies were off. */
  private Optional<CopyOptions> copies(String application) {
    if (!SurviveSettings.isOn(conf) || executorId.equals(DRIVER)) {
      return Optional.empty();
    }
    try {
      return Optional.of(
          new CopyOptions(
              CopyFolder.open(conf, application, executorId),
              SurviveSettings.placeId(),
              SurviveSettings.MAX_BYTES_IN_FLIGHT.get(conf),
              SurviveSettings.MAX_AGE.get(conf),
              new DriversCopies()));
    } catch (IOException | RuntimeException e) {
      LOG.warn("Map outputs are not copied, because {} cannot be reached", SurviveSettings.PATH, e);
      return Optional.empty();
    }
  }

  /** What the driver knows of copies. A lost message costs a copy, or what it could have saved. */
  private final class DriversCopies implements CopyListener {
    private final AtomicBoolean unanswered = new AtomicBoolean();

    @Override
    public boolean isCopied(BlockKey key) {
      try {
        AskCopied request = new AskCopied(key.shuffleId(), key.mapId());
        return ((CopyKnown) MessageCodec.ask(context, request)).known();
      } catch (Exception e) {
        if (e instanceof InterruptedException) {
          Thread.currentThread().interrupt();
        } else if (unanswered.compareAndSet(false, true)) {
          LOG.warn("The driver did not say whether {} was copied before; it is copied", key, e);
        }
        return false;
      }
    }

    @Override
    public void copied(BlockKey key, boolean own, boolean leaving) {
      try {
        MessageCodec.send(
            context, new Copied(executorId, key.shuffleId(), key.mapId(), own, leaving));
      } catch (IOException | RuntimeException e) {
        LOG.warn("The driver does not know that {} was copied", key, e);
      }
    }
  }

  private MemoryOptions memory() {
    String folder = MemorySettings.FOLDER.get(conf);
    long memory = MemorySettings.SIZE.get(conf);
    return new MemoryOptions(
        folder.isEmpty() ? Optional.empty() : Optional.of(Path.of(folder)),
        Arrays.stream(env.blockManager().diskBlockManager().localDirs()).map(File::toPath).toList(),
        MemorySettings.segmentBytes(conf),
        memory,
        MemorySettings.SPILL_SIZE.get(conf),
        MemorySettings.MARGIN.get(conf),
        encryption(),
        MemorySettings.IDLE_TIME.get(conf),
        ContainerMemory.grant(conf, executorId));
  }

  /** Spark gives each executor the application's key when it starts. */
  private Optional<DiskEncryption> encryption() {
    if (!WeftSettings.isDiskEncrypted(conf)) {
      return Optional.empty();
    }
    Option<byte[]> key = env.securityManager().getIOEncryptionKey();
    if (key.isEmpty()) {
      throw new IllegalStateException(
          WeftSettings.DISK_ENCRYPTION
              + " is true, but Spark gave executor "
              + executorId
              + " no key. Set it for the application as a whole, before it starts");
    }
    return Optional.of(new DiskEncryption(new EncryptionKey(key.get()), SpillMemory.of(conf)));
  }

  private NetworkOptions network() {
    long inFlight = WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT.get(conf);
    return new NetworkOptions(
        host(),
        bindHost(),
        WeftSettings.PORT.get(conf),
        conf.getInt("spark.executor.cores", 0),
        WeftSettings.TRANSPORT.get(conf),
        Math.min(WeftSettings.FETCH_REQUEST_SIZE.get(conf), inFlight),
        inFlight,
        WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT_PER_EXECUTOR.get(conf),
        WeftSettings.FETCH_TIMEOUT.get(conf),
        conf,
        env.securityManager());
  }

  private TrafficOptions traffic() {
    return new TrafficOptions(
        WeftSettings.CHECKSUMS.get(conf),
        WeftSettings.COMPRESSION.get(conf),
        WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT_PER_PEER.get(conf),
        WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT.get(conf),
        WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT_PER_PEER.get(conf));
  }
}
