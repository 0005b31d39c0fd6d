package io.weft.spark.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.config.Setting.InvalidSettingException;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The private memory that a number of tasks needs. */
class SpillMemoryTest {
  private static SparkConf encrypted(String master) {
    return new SparkConf(false)
        .set("spark.io.encryption.enabled", "true")
        .set("spark.master", master);
  }

  @ParameterizedTest
  @CsvSource({
    "local, 0, 0, 0",
    "local[3], 0, 0, 3",
    "'local[3,2]', 8, 0, 3",
    "'local-cluster[2,5,1024]', 8, 0, 5",
    "spark://host:7077, 0, 0, 0",
    "spark://host:7077, 8, 0, 8",
    "yarn, 8, 3, 2",
    "yarn, 1, 3, 1"
  })
  void tasksAreCoresByCoresOfATask(String master, int cores, int cpus, int tasks) {
    SparkConf conf = new SparkConf(false).set("spark.master", master);
    if (cores > 0) {
      conf.set("spark.executor.cores", Integer.toString(cores));
    }
    if (cpus > 0) {
      conf.set("spark.task.cpus", Integer.toString(cpus));
    }
    assertThat(SpillMemory.tasks(conf).orElse(0)).isEqualTo(tasks);
  }

  @Test
  void theDefaultIsEnoughForFortyTwoTasksAndStartsWithThreeTimesAsMany() {
    assertThat(SpillMemory.remark(encrypted("local[42]"))).isEmpty();
    assertThat(SpillMemory.remark(encrypted("local[43]"))).isPresent();
    SpillMemory.check(encrypted("local[128]"));
    assertThatThrownBy(() -> SpillMemory.check(encrypted("local[129]")))
        .isInstanceOf(InvalidSettingException.class)
        .hasMessage(
            "spark.weft.spill.privateMemory is 1073741824 bytes, of which 536870912 are for the 129"
                + " tasks that an executor runs at once, which is less than a chunk for each; a"
                + " chunk has up to 4194304 bytes. Raise it, or make spark.weft.memory.segmentSize"
                + " smaller");
  }

  @Test
  void itsAdviceHelps() {
    SparkConf conf = encrypted("local[129]").set("spark.weft.memory.segmentSize", "1m");
    SpillMemory.check(conf);
    assertThat(SpillMemory.remark(conf)).isEmpty();
    SpillMemory.check(encrypted("local[129]").set("spark.weft.spill.privateMemory", "2g"));
  }

  @Test
  void littleMemoryMakesShortSegmentsAndShortChunks() {
    SparkConf conf = encrypted("local[16]").set("spark.weft.spill.privateMemory", "2m");
    assertThat(MemorySettings.segmentBytes(conf)).isEqualTo(1 << 20);
    SpillMemory.check(conf);
    assertThatThrownBy(() -> SpillMemory.check(conf.set("spark.master", "local[17]")))
        .hasMessageContaining("a chunk has up to 65536 bytes");
  }

  @Test
  void withoutEncryptionThereIsNoPrivateMemory() {
    SparkConf conf = new SparkConf(false).set("spark.master", "local[1000]");
    SpillMemory.check(conf);
    assertThat(SpillMemory.remark(conf)).isEmpty();
  }

  @Test
  void aChunkIsASixteenthOfASegmentAndNoMoreThanFourMebibytes() {
    assertThat(SpillMemory.maxChunkBytes(1 << 20)).isEqualTo(64 << 10);
    assertThat(SpillMemory.maxChunkBytes(1 << 30)).isEqualTo(4 << 20);
    assertThat(SpillMemory.maxChunkBytes(1)).isEqualTo(4 << 10);
  }
}
