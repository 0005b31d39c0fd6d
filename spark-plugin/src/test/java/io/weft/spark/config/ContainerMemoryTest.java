package io.weft.spark.config;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.driver.SettingsWarnings;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ContainerMemoryTest {
  private static final long MIB = 1 << 20;

  private static SparkConf on(String master) {
    return new SparkConf(false).set("spark.master", master).set("spark.executor.memory", "8g");
  }

  private static long container(SparkConf conf) {
    return ContainerMemory.grant(conf, "1").containerBytes().orElse(0) / MIB;
  }

  @Test
  void yarnCountsHeapOverheadAndOffHeap() {
    SparkConf conf = on("yarn");
    assertThat(container(conf)).isEqualTo(8192 + 819);
    conf.set("spark.executor.memoryOverheadFactor", "0.2");
    assertThat(container(conf)).isEqualTo(8192 + 1638);
    conf.set("spark.executor.memoryOverhead", "2048");
    assertThat(container(conf)).isEqualTo(8192 + 2048);
    conf.set("spark.memory.offHeap.size", "1g");
    assertThat(container(conf)).as("off-heap memory is off").isEqualTo(8192 + 2048);
    conf.set("spark.memory.offHeap.enabled", "true").set("spark.executor.pyspark.memory", "500m");
    assertThat(container(conf)).isEqualTo(8192 + 2048 + 1024 + 500);
    assertThat(ContainerMemory.grant(conf, "1").otherBytes()).isEqualTo(1024 * MIB);
    assertThat(ContainerMemory.grant(conf, "1").childBytes()).isEqualTo(500 * MIB);
    assertThat(ContainerMemory.grant(conf, "driver").containerBytes()).isEmpty();
  }

  @Test
  void aSmallHeapHasTheLeastOverhead() {
    SparkConf conf = on("yarn").remove("spark.executor.memory");
    assertThat(container(conf)).isEqualTo(1024 + 384);
    assertThat(container(conf.set("spark.executor.minMemoryOverhead", "500m")))
        .isEqualTo(1024 + 500);
  }

  @ParameterizedTest
  @CsvSource({"'local[2]'", "'local-cluster[2,1,1024]'", "spark://host:7077", "k8s://https://host"})
  void otherManagersLimitByControlGroupsOrNotAtAll(String master) {
    assertThat(ContainerMemory.grant(on(master), "1").containerBytes()).isEmpty();
  }

  @Test
  void privateMemoryIsBesideTheHeap() {
    SparkConf conf =
        on("yarn")
            .set("spark.io.encryption.enabled", "true")
            .set("spark.weft.spill.privateMemory", "256m");
    assertThat(ContainerMemory.grant(conf, "1").otherBytes()).isEqualTo(256 * MIB);
    assertThat(container(conf)).isEqualTo(8192 + 819);
  }

  @ParameterizedTest
  @CsvSource({"yarn", "k8s://https://host"})
  void tooSmallAnOverheadIsSaidWithNumbers(String master) {
    SparkConf conf = on(master).set("spark.weft.memory.size", "4g");
    assertThat(SettingsWarnings.on(conf))
        .singleElement()
        .asString()
        .startsWith("spark.executor.memoryOverhead is 819.0 MiB, but")
        .contains("4.0 GiB of shared memory (spark.weft.memory.size)", "about 819.2 MiB")
        .endsWith("Set it to 4916m, or spark.weft.memory.size to 0");
    assertThat(SettingsWarnings.on(conf.set("spark.executor.memoryOverhead", "4916m"))).isEmpty();
  }

  @Test
  void withoutAContainerThereIsNothingToSay() {
    assertThat(SettingsWarnings.on(on("spark://host:7077").set("spark.weft.memory.size", "4g")))
        .isEmpty();
    assertThat(SettingsWarnings.on(on("yarn"))).as("the default size").isEmpty();
  }
}
