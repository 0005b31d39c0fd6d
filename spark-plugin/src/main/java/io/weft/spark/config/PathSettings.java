package io.weft.spark.config;

import io.weft.peer.PathRules;
import java.util.List;
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
}
