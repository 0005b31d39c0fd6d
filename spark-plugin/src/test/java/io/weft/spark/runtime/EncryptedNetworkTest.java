package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.config.PathSettings;
import io.weft.spark.config.WeftSettings;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Arrays between hosts are not encrypted, so they are disabled if Spark encrypts its network. */
class EncryptedNetworkTest {
  private static boolean network(SparkConf conf, boolean besideNccl) {
    return WeftExecutorPlugin.overHosts(PathSettings.rules(conf), besideNccl).network();
  }

  @Test
  void arraysGoBetweenHostsWhereNothingIsEncrypted() {
    SparkConf conf = new SparkConf(false).set("spark.authenticate", "true");
    assertThat(network(conf, false)).isTrue();
    assertThat(network(conf, true)).isTrue();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "spark.network.crypto.enabled",
        "spark.authenticate.enableSaslEncryption",
        "spark.ssl.rpc.enabled"
      })
  void arraysStayOnTheHostWhereSparkEncrypts(String encryption) {
    SparkConf conf = new SparkConf(false).set(encryption, "true");
    assertThat(network(conf, false)).isFalse();
    assertThat(network(conf, true)).isFalse();
    conf.set(WeftSettings.NCCL_ALLOW_UNENCRYPTED.key(), "true");
    assertThat(network(conf, false)).as("communicators that do not supplement NCCL").isFalse();
    assertThat(network(conf, true)).isTrue();
  }
}
