package io.weft.spark.config;

import io.weft.peer.PathRules;
import java.util.List;
import org.apache.spark.SparkConf;

/** What the settings say of the ways between executors. Stateless. */
public final class PathSettings {
  private static final List<String> ENCRYPTION =
      List.of(
          "spark.network.crypto.enabled",
          "spark.authenticate.enableSaslEncryption",
          "spark.ssl.rpc.enabled");

  private PathSettings() {}

  /** Whether Spark encrypts what executors send each other. */
  public static boolean isNetworkEncrypted(SparkConf conf) {
    return ENCRYPTION.stream().anyMatch(key -> conf.getBoolean(key, false));
  }

  /** By which the ways are chosen, the same on the driver and on all executors. */
  public static PathRules rules(SparkConf conf) {
    return new PathRules(
        WeftSettings.TRANSPORT.get(conf),
        isNetworkEncrypted(conf),
        WeftSettings.NCCL_ALLOW_UNENCRYPTED.get(conf));
  }
}
