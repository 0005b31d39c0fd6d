package io.weft.spark.executor;

import io.weft.encryption.SealingKey;
import io.weft.exchange.DiskEncryption;
import io.weft.exchange.ExchangeOptions;
import io.weft.exchange.MemoryOptions;
import io.weft.exchange.NetworkOptions;
import io.weft.exchange.TrafficOptions;
import io.weft.spark.config.SpillMemory;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.message.WeftVersion;
import java.io.File;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/** Turns the settings and what Spark knows of this executor into the exchange's options. */
final class ExecutorOptions {
  private static final String DRIVER = "driver";

  private final SparkEnv env;
  private final SparkConf conf;
  private final String executorId;

  ExecutorOptions(SparkEnv env, PluginContext context) {
    this.env = env;
    this.conf = context.conf();
    this.executorId = context.executorID();
  }

  /** Where other executors reach this one. In local mode Spark does not know yet, nobody asks. */
  String host() {
    BlockManagerId id = env.blockManager().blockManagerId();
    return id == null ? conf.get("spark.driver.host", "localhost") : id.host();
  }

  /**
   * The address to listen on. An executor is started with one that it can bind; a driver, which is
   * the executor of local mode, may be known by a name that only leads to it from outside.
   */
  String bindHost() {
    return executorId.equals(DRIVER) ? conf.get("spark.driver.bindAddress", host()) : host();
  }

  /** Options for an application whose random key the driver chose. */
  ExchangeOptions build(String applicationKey) {
    return new ExchangeOptions(
        conf.get("spark.app.id", "local") + "-" + applicationKey,
        executorId,
        WeftVersion.current(),
        memory(),
        network(),
        traffic());
  }

  private MemoryOptions memory() {
    String folder = WeftSettings.MEMORY_FOLDER.get(conf);
    long memory = WeftSettings.MEMORY_SIZE.get(conf);
    return new MemoryOptions(
        folder.isEmpty() ? Optional.empty() : Optional.of(Path.of(folder)),
        Arrays.stream(env.blockManager().diskBlockManager().localDirs()).map(File::toPath).toList(),
        WeftSettings.segmentBytes(conf),
        memory,
        WeftSettings.SPILL_SIZE.get(conf),
        WeftSettings.MEMORY_MARGIN.get(conf),
        encryption());
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
    return Optional.of(new DiskEncryption(new SealingKey(key.get()), SpillMemory.of(conf)));
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
