package io.weft.spark.config;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.driver.SettingsWarnings;
import io.weft.spark.shuffle.WeftShuffleManager;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class ActivationTest {
  @Test
  void onByDefault() {
    assertThat(Activation.decide(new SparkConf(false)).inertReason()).isEmpty();
  }

  @Test
  void onIfTheUserSetsWeftsManager() {
    SparkConf conf =
        new SparkConf(false).set("spark.shuffle.manager", WeftShuffleManager.class.getName());
    assertThat(Activation.decide(conf).inertReason()).isEmpty();
  }

  @Test
  void offWithAReasonForConflictingSettings() {
    assertReason("spark.shuffle.manager", "sort");
    assertReason("spark.shuffle.useOldFetchProtocol", "true");
  }

  @Test
  void onWithEncryptedDisks() {
    SparkConf conf = new SparkConf(false).set("spark.io.encryption.enabled", "true");
    assertThat(Activation.decide(conf).inertReason()).isEmpty();
  }

  @Test
  void offWithDynamicAllocationOverTheShuffleService() {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.shuffle.service.enabled", "true")
            .set("spark.dynamicAllocation.enabled", "true");
    assertThat(Activation.decide(conf).inertReason())
        .hasValueSatisfying(reason -> assertThat(reason).contains("shuffleTracking"));
    conf.set("spark.dynamicAllocation.enabled", "false");
    assertThat(Activation.decide(conf).inertReason()).isEmpty();
  }

  private static void assertReason(String key, String value) {
    assertThat(Activation.decide(new SparkConf(false).set(key, value)).inertReason())
        .hasValueSatisfying(reason -> assertThat(reason).startsWith(key).contains(value));
  }

  @Test
  void remarksNameTheKeys() {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.shuffle.service.enabled", "true")
            .set("spark.shuffle.push.enabled", "true")
            .set("spark.storage.decommission.shuffleBlocks.enabled", "true")
            .set("spark.storage.decommission.fallbackStorage.path", "s3a://bucket/")
            .set("spark.network.crypto.enabled", "true")
            .set("spark.weft.nccl.allowUnencrypted", "true")
            .set("spark.weft.memory.size", "2m")
            .set("spark.weft.fetch.maxBytesInFlight", "1m");
    assertThat(SettingsWarnings.on(conf))
        .hasSize(6)
        .anyMatch(remark -> remark.startsWith("spark.weft.nccl.allowUnencrypted: Spark encrypts"))
        .anyMatch(remark -> remark.startsWith("spark.weft.memory.size is below"))
        .anyMatch(remark -> remark.startsWith("spark.weft.fetch.maxBytesInFlight is below"))
        .anyMatch(remark -> remark.startsWith("spark.shuffle.service.enabled:"))
        .anyMatch(remark -> remark.startsWith("spark.storage.decommission.fallbackStorage.path:"));
    assertThat(SettingsWarnings.on(new SparkConf(false))).isEmpty();
  }
}
