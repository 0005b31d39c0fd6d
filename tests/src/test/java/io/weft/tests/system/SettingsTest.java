package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.tests.support.Sessions;
import io.weft.tests.support.Workspace;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An invalid setting prevents the start of the application, with a helpful message. */
class SettingsTest {
  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @AfterEach
  void stopWhatStartedAllTheSame() {
    SparkSession.getDefaultSession().foreach(session -> stop(session));
  }

  private static Object stop(SparkSession session) {
    session.stop();
    return null;
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "spark.weft.enabled | maybe | true or false",
        "spark.weft.route | planes | auto, rows, columns",
        "spark.weft.transport | pigeon | auto, shm, tcp",
        "spark.weft.memory.size | much | size",
        "spark.weft.memory.size | -1 | size",
        "spark.weft.memory.size | 65t | to 64t",
        "spark.weft.memory.size | 99999999999999999999g | size",
        "spark.weft.memory.hostFraction | 0 | fraction from 0.01 to 1",
        "spark.weft.memory.hostFraction | -1 | fraction from 0.01 to 1",
        "spark.weft.memory.hostFraction | 2 | fraction from 0.01 to 1",
        "spark.weft.memory.hostFraction | NaN | fraction from 0.01 to 1",
        "spark.weft.memory.hostFraction | half | fraction from 0.01 to 1",
        "spark.weft.memory.segmentSize | 1 | from 1m to 1g",
        "spark.weft.memory.folder | here | absolute path",
        "spark.weft.memory.margin | -5m | size",
        "spark.weft.spill.size | lots | size",
        "spark.weft.spill.size | -1 | size",
        "spark.weft.fetch.timeout | 0 | duration",
        "spark.weft.fetch.requestSize | 5 | size",
        "spark.weft.fetch.maxBytesInFlight | 100t | size",
        "spark.weft.batch.rows | 0 | from 1 to",
        "spark.weft.batch.size | 0 | size",
        "spark.weft.ui.enabled | 2 | true or false"
      })
  void aWrongValueIsAnErrorThatNamesKeyValueAndWhatIsAllowed(
      String key, String value, String allowed) {
    assertThatThrownBy(() -> Sessions.weft(WORKSPACE, "local[1]", Map.of(key, value)))
        .hasMessageContainingAll(key, "'" + value + "'", allowed);
  }

  @Test
  void anUnknownKeyIsAnErrorThatNamesTheNearest() {
    assertThatThrownBy(
            () -> Sessions.weft(WORKSPACE, "local[1]", Map.of("spark.weft.memory.sise", "1g")))
        .hasMessageContainingAll("spark.weft.memory.sise", "spark.weft.memory.size");
  }

  @ParameterizedTest
  @CsvSource({"spark.weft.route, planes", "spark.weft.enabled, maybe"})
  void aWrongValueOfASessionIsAnErrorToo(String key, String value) {
    SparkSession session = Sessions.weft(WORKSPACE, "local[2]", Map.of());
    session.conf().set(key, value);
    assertThatThrownBy(
            () -> session.sql("SELECT /*+ REPARTITION(3) */ id FROM RANGE(10)").collectAsList())
        .hasStackTraceContaining(key)
        .hasStackTraceContaining(value);
    session.conf().unset(key);
    assertThat(session.sql("SELECT /*+ REPARTITION(3) */ id FROM RANGE(10)").collectAsList())
        .hasSize(10);
  }
}
