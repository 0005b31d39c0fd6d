package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TrafficReport;
import io.weft.spark.config.Activation;
import io.weft.spark.driver.DriverState.ExecutorEndListener;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.ui.ExecutorRow;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.junit.jupiter.api.Test;

/** What the driver keeps of executors that come and go. */
class DriverStateTest {
  private final SparkConf conf = new SparkConf(false);
  private final DriverState state = new DriverState(Activation.decide(conf), conf);

  private static PeerAddress address(String id) {
    return new PeerAddress(id, "00c0ffee", "host", 1, "/folder", "token", "boot", "1");
  }

  private void begin(String id) {
    state.greeted(id);
    state.announced(address(id));
    state.remarked(address(id), "a remark");
    state.reported(new Report(new ExecutorReport(id, "host", Map.of()), TrafficReport.NONE, false));
  }

  private List<String> running() {
    return state.activity().executors().rows().stream()
        .filter(ExecutorRow::running)
        .map(ExecutorRow::id)
        .toList();
  }

  private void end(String id) {
    new ExecutorEndListener(state)
        .onExecutorRemoved(new SparkListenerExecutorRemoved(0, id, "gone"));
  }

  @Test
  void theStateOfAnExecutorGoesWithIt() {
    begin("1");
    begin("2");
    end("1");
    assertThat(state.peers()).isEqualTo(1);
    assertThat(running()).containsExactly("2");
  }

  /** Running tasks may still read its blocks on its host. */
  @Test
  void theAddressOfAnExecutorThatHasJustEndedIsFound() {
    begin("1");
    end("1");
    assertThat(state.find("boot", List.of("1"))).containsExactly(address("1"));
    assertThat(state.wasGreeted("1")).isTrue();
  }

  @Test
  void messagesThatArriveAfterTheEndLeaveNothing() {
    begin("1");
    end("1");
    begin("1");
    end("2");
    begin("2");
    end("1");
    assertThat(state.peers()).isZero();
    assertThat(running()).isEmpty();
    assertThat(state.wasGreeted("2")).isFalse();
  }

  @Test
  void nothingGrowsWithExecutorsThatEverRan() {
    int more = 3 * DriverState.MAX_ENDED;
    IntStream.range(0, more)
        .mapToObj(Integer::toString)
        .forEach(
            id -> {
              begin(id);
              end(id);
            });
    List<String> all = IntStream.range(0, more).mapToObj(Integer::toString).toList();
    assertThat(state.find("boot", all)).hasSize(DriverState.MAX_ENDED);
    assertThat(running()).isEmpty();
    assertThat(state.wasGreeted("0")).isFalse();
  }
}
