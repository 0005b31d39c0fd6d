package io.weft.spark.config;

import static java.util.Map.entry;

import io.weft.memory.SettingNames;
import io.weft.shuffle.peer.PathRules;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;

/** Settings that decide the paths between executors. Stateless. */
public final class PathSettings {
  private static final List<String> ENCRYPTION =
      List.of(
          "spark.network.crypto.enabled",
          "spark.authenticate.enableSaslEncryption",
          "spark.ssl.rpc.enabled");

  private PathSettings() {}

  /** Whether Spark encrypts data between executors. */
  public static boolean isNetworkEncrypted(SparkConf conf) {
    return ENCRYPTION.stream().anyMatch(key -> conf.getBoolean(key, false));
  }

  /** Returns the rules that choose paths. They are the same on the driver and on all executors. */
  public static PathRules rules(SparkConf conf) {
    return new PathRules(
        WeftSettings.TRANSPORT.get(conf),
        isNetworkEncrypted(conf),
        WeftSettings.NCCL_ALLOW_UNENCRYPTED.get(conf),
        OptionNames.settings());
  }

  /** The settings behind the options of the lower modules, so that messages name settings. */
  public static final class OptionNames {
    private static final SettingNames SETTINGS =
        new SettingNames(
            Map.ofEntries(
                entry("memoryBytes", MemorySettings.SIZE.key()),
                entry("memoryFolder", MemorySettings.FOLDER.key()),
                entry("hostFraction", MemorySettings.HOST_FRACTION.key()),
                entry("containerBytes", ContainerMemory.OVERHEAD),
                entry("diskBytes", MemorySettings.SPILL_SIZE.key()),
                entry("privateMemory", MemorySettings.SPILL_PRIVATE_MEMORY.key()),
                entry("marginBytes", MemorySettings.MARGIN.key()),
                entry("diskFolders", "spark.local.dir"),
                entry("fetchTimeout", WeftSettings.FETCH_TIMEOUT.key()),
                entry("maxServedBytes", WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT.key()),
                entry(
                    "maxServedBytesPerPeer", WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT_PER_PEER.key()),
                entry("collectivesGpuMemory", WeftSettings.COLLECTIVES_GPU_MEMORY.key()),
                entry("mode", WeftSettings.TRANSPORT.key()),
                entry("unencryptedNccl", WeftSettings.NCCL_ALLOW_UNENCRYPTED.key())));

    private OptionNames() {}

    /** Returns the key of the setting for each option that messages name. */
    public static SettingNames settings() {
      return SETTINGS;
    }
  }
}
