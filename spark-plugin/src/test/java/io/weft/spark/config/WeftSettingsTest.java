package io.weft.spark.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.TransportMode;
import io.weft.spark.config.Setting.InvalidSettingException;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.internal.SQLConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class WeftSettingsTest {
  /** A changed default is a change for users, so it must be changed here too. */
  @Test
  void defaultsArePinned() {
    Map<String, String> expected = new TreeMap<>();
    expected.put("spark.weft.enabled", "true");
    expected.put("spark.weft.route", "auto");
    expected.put("spark.weft.reportedSizes", "spark");
    expected.put("spark.weft.rdd.streams", "false");
    expected.put("spark.weft.transport", "auto");
    expected.put("spark.weft.nccl.library", "");
    expected.put("spark.weft.nccl.allowUnencrypted", "false");
    expected.put("spark.weft.port", "0");
    expected.put("spark.weft.fallback.failures", "3");
    expected.put("spark.weft.driver.collect", "true");
    expected.put("spark.weft.memory.size", "0");
    expected.put("spark.weft.memory.hostFraction", "0.5");
    expected.put("spark.weft.memory.segmentSize", "64m");
    expected.put("spark.weft.memory.folder", "");
    expected.put("spark.weft.memory.margin", "32m");
    expected.put("spark.weft.memory.idleTime", "60s");
    expected.put("spark.weft.spill.size", "1t");
    expected.put("spark.weft.spill.privateMemory", "1g");
    expected.put("spark.weft.adopt.enabled", "false");
    expected.put("spark.weft.adopt.timeout", "30s");
    expected.put("spark.weft.adopt.verify", "sample");
    expected.put("spark.weft.adopt.inBudget", "true");
    expected.put("spark.weft.adopt.keepTime", "0s");
    expected.put("spark.weft.survive.enabled", "false");
    expected.put("spark.weft.survive.path", "");
    expected.put("spark.weft.survive.maxBytesInFlight", "4g");
    expected.put("spark.weft.survive.maxAge", "600s");
    expected.put("spark.weft.survive.sweepAge", "3600s");
    expected.put("spark.weft.trace.folder", "");
    expected.put("spark.weft.trace.maxSize", "1g");
    expected.put("spark.weft.fetch.timeout", "120s");
    expected.put("spark.weft.fetch.requestSize", "8m");
    expected.put("spark.weft.fetch.maxBytesInFlight", "48m");
    expected.put("spark.weft.fetch.maxBytesInFlightPerPeer", "48m");
    expected.put("spark.weft.fetch.maxBytesInFlightPerExecutor", "1g");
    expected.put("spark.weft.serve.maxBytesInFlight", "1g");
    expected.put("spark.weft.serve.maxBytesInFlightPerPeer", "256m");
    expected.put("spark.weft.checksums", "true");
    expected.put("spark.weft.compression", "auto");
    expected.put("spark.weft.collectives.gpuMemory", "1g");
    expected.put("spark.weft.collectives.timeout", "120s");
    expected.put("spark.weft.transfers.batchSize", "4m");
    expected.put("spark.weft.transfers.batchAge", "5ms");
    expected.put("spark.weft.transfers.deadline", "120s");
    expected.put("spark.weft.transfers.idle", "300s");
    expected.put("spark.weft.transfers.gpuMemory", "1g");
    expected.put("spark.weft.transfers.followDevices", "true");
    expected.put("spark.weft.gpu.memory", "4g");
    expected.put("spark.weft.gpu.exchangeMemory", "4g");
    expected.put("spark.weft.gpu.pinnedMemory", "256m");
    expected.put("spark.weft.gpu.fetchAhead", "64m");
    expected.put("spark.weft.gpu.functions", "");
    expected.put("spark.weft.tensors.codec", "none");
    expected.put("spark.weft.debug.dumpStep", "-1");
    expected.put("spark.weft.debug.dumpFolder", "");
    expected.put("spark.weft.batch.rows", "8192");
    expected.put("spark.weft.batch.size", "4m");
    expected.put("spark.weft.ui.enabled", "true");
    Map<String, String> defaults = new TreeMap<>();
    WeftSettings.all().forEach(setting -> defaults.put(setting.key(), setting.defaultText()));
    assertThat(defaults).isEqualTo(expected);
  }

  @ParameterizedTest
  @MethodSource("all")
  void theDefaultIsAllowedAndReadAsWritten(Setting<?> setting) {
    assertThat((Object) setting.parse(setting.defaultText())).isEqualTo(setting.defaultValue());
  }

  static Iterable<Setting<?>> all() {
    return WeftSettings.all();
  }

  @Test
  void valuesAreTyped() {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.weft.enabled", "FALSE")
            .set("spark.weft.transport", "TCP")
            .set("spark.weft.memory.size", "3g")
            .set("spark.weft.fetch.timeout", "1500ms")
            .set("spark.weft.batch.rows", " 100 ");
    assertThat(WeftSettings.ENABLED.get(conf)).isFalse();
    assertThat(WeftSettings.TRANSPORT.get(conf)).isEqualTo(TransportMode.TCP);
    assertThat(MemorySettings.SIZE.get(conf)).isEqualTo(3L << 30);
    assertThat(WeftSettings.FETCH_TIMEOUT.get(conf)).isEqualTo(Duration.ofMillis(1500));
    assertThat(WeftSettings.BATCH_ROWS.get(conf)).isEqualTo(100);
  }

  @Test
  void aTimeoutWithoutAUnitIsSeconds() {
    assertThat(WeftSettings.FETCH_TIMEOUT.parse("90")).isEqualTo(Duration.ofSeconds(90));
  }

  @Test
  void aSessionReadsItsOwnValue() {
    SQLConf session = new SQLConf();
    assertThat(WeftSettings.ROUTE.get(session)).isEqualTo(Route.AUTO);
    session.setConfString("spark.weft.route", "columns");
    assertThat(WeftSettings.ROUTE.get(session)).isEqualTo(Route.COLUMNS);
  }

  @ParameterizedTest
  @CsvSource(
      textBlock =
          """
          spark.weft.enabled,               yes,      true or false
          spark.weft.route,                 arrow,    'one of auto, rows, columns'
          spark.weft.transport,             udp,      'one of auto, shm, tcp'
          spark.weft.port,                  70000,    a number from 0 to 65535
          spark.weft.memory.size,           1k,       0 (choose) or a size from 1m to 64t
          spark.weft.memory.size,           -1,       0 (choose) or a size from 1m to 64t
          spark.weft.memory.hostFraction,   0,        a fraction from 0.01 to 1.0
          spark.weft.memory.hostFraction,   -0.5,     a fraction from 0.01 to 1.0
          spark.weft.memory.hostFraction,   1.5,      a fraction from 0.01 to 1.0
          spark.weft.memory.hostFraction,   NaN,      a fraction from 0.01 to 1.0
          spark.weft.memory.hostFraction,   50%,      a fraction from 0.01 to 1.0
          spark.weft.memory.segmentSize,    many,     a size from 1m to 1g
          spark.weft.memory.segmentSize,    0,        a size from 1m to 1g
          spark.weft.memory.folder,         shm,      empty (choose) or an absolute path
          spark.weft.fetch.timeout,         0,        a duration from 100ms to 86400s
          spark.weft.fetch.timeout,         soon,     a duration from 100ms to 86400s
          spark.weft.transfers.batchSize,   0,        a size from 1 to 1g
          spark.weft.transfers.batchAge,    2min,     a duration from 1ms to 60s
          spark.weft.transfers.deadline,    50ms,     a duration from 100ms to 86400s
          spark.weft.tensors.codec,         fp8,      'one of none, bfloat16, float8_e4m3, float8_e5m2, zstd'
          spark.weft.debug.dumpStep,        -2,       a number from -1 to 2147483647
          spark.weft.debug.dumpFolder,      dump,     empty (choose) or an absolute path
          spark.weft.batch.rows,            1.5,      a number from 1 to 1048576
          spark.weft.batch.size,            99999999999999999999, a size from 1k to 1g
          """)
  void aWrongValueNamesKeyValueAndAllowedValues(String key, String value, String allowed) {
    SparkConf conf = new SparkConf(false).set(key, value);
    assertThatThrownBy(() -> SettingsCheck.check(conf))
        .isInstanceOf(InvalidSettingException.class)
        .hasMessageStartingWith(key + " is set to '" + value + "', but must be " + allowed + ";")
        .hasMessageContaining("the default is ");
  }

  @ParameterizedTest
  @CsvSource({
    "spark.weft.memory.sise, spark.weft.memory.size",
    "spark.weft.fetch.timeOut, spark.weft.fetch.timeout",
    "spark.weft.segmentSize, spark.weft.memory.segmentSize"
  })
  void anUnknownKeyNamesTheNearestOne(String key, String meant) {
    SparkConf conf = new SparkConf(false).set(key, "1");
    assertThatThrownBy(() -> SettingsCheck.check(conf))
        .isInstanceOf(InvalidSettingException.class)
        .hasMessage(
            key + " is set to '1', but Weft has no such setting; did you mean " + meant + "?");
  }

  @Test
  void aKeyNearNoneNamesThePage() {
    SparkConf conf = new SparkConf(false).set("spark.weft.anEntirelyDifferentMatter", "1");
    assertThatThrownBy(() -> SettingsCheck.check(conf))
        .hasMessageContaining("docs/configuration.md");
  }

  @Test
  void everyMistakeIsReported() {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.weft.enabled", "1")
            .set("spark.weft.rout", "rows")
            .set("spark.weft.batch.rows", "0")
            .set("spark.other.key", "1");
    assertThatThrownBy(() -> SettingsCheck.check(conf))
        .message()
        .hasLineCount(3)
        .contains("spark.weft.enabled", "spark.weft.rout ", "spark.weft.batch.rows");
  }
}
