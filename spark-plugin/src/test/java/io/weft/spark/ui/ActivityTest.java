package io.weft.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.TrafficReport;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.ui.ExecutorRow.MemorySample;
import io.weft.spark.ui.Overview.CollectiveRow;
import io.weft.spark.ui.TabRequest.Column;
import java.util.List;
import java.util.Map;
import org.apache.spark.util.JsonProtocol;
import org.junit.jupiter.api.Test;

/** What the driver keeps for the tab, its bounds, and its way through the event log. */
class ActivityTest {
  private final MadeUpActivity made = new MadeUpActivity();
  private final Activity activity = made.activity;

  private void report(String id, boolean late, String metric, long value) {
    ExecutorReport report = new ExecutorReport(id, "host-" + id, Map.of(metric, value));
    activity.reported(new Report(report, TrafficReport.NONE, false), late);
  }

  @Test
  void figuresOfAllExecutorsAddUp() {
    made.shuffle(1);
    for (int executor = 0; executor < 10; executor++) {
      made.report(executor, 10, 1, 1);
    }
    ShuffleRow row = activity.shuffles().rows().get(0);
    assertThat(row.onDisk()).isEqualTo(45_000);
    assertThat(row.own()).isEqualTo(2 * 45_000);
    assertThat(row.sameHost()).isEqualTo(3 * 45_000);
    assertThat(row.network()).isEqualTo(4 * 45_000);
    assertThat(row.gpu()).isEqualTo(5 * 45_000);
    TrafficMatrix.Snapshot traffic = activity.traffic().snapshot();
    assertThat(traffic.byHost()).isFalse();
    assertThat(traffic.names()).startsWith("0", "1", "2").hasSize(10);
    assertThat(traffic.bytes().get(2).get(7)).isEqualTo(10_000_000);
  }

  @Test
  void theOldestShufflesGo() {
    for (int i = 0; i < ShuffleTable.MAX_SHUFFLES + 10; i++) {
      made.shuffle(i);
    }
    ShuffleTable.ShufflePage page = activity.shuffles().page(Column.ID, false, 0, 1);
    assertThat(page.total()).isEqualTo(ShuffleTable.MAX_SHUFFLES);
    assertThat(activity.shuffles().total()).isEqualTo(ShuffleTable.MAX_SHUFFLES + 10);
    assertThat(page.rows().get(0).id()).isEqualTo(10);
    assertThat(activity.takeChanges(made.overview(), false).shuffles())
        .hasSize(ShuffleTable.MAX_SHUFFLES);
    activity.shuffles().add(MadeUpActivity.figures(3, 1));
    activity.shuffles().add(MadeUpActivity.figures(30, 1));
    assertThat(activity.takeChanges(made.overview(), false).shuffles())
        .extracting(ShuffleRow::id)
        .containsExactly(30);
    assertThat(made.html()).contains("10 older shuffles are not in the table");
  }

  @Test
  void aRunOfAnyLengthHasFewSamplesOfMemory() {
    for (int i = 0; i < 10_000; i++) {
      made.clock.addAndGet(2_000);
      report("1", false, "memoryUsed", i + 1);
    }
    List<MemorySample> memory = activity.executors().rows().get(0).memory();
    assertThat(memory).hasSizeBetween(ExecutorTable.MAX_SAMPLES / 3, ExecutorTable.MAX_SAMPLES);
    assertThat(memory.get(0).used()).isEqualTo(1);
    assertThat(memory.get(memory.size() - 1).used()).isEqualTo(10_000);
    assertThat(memory).isSortedAccordingTo((a, b) -> Long.compare(a.time(), b.time()));
    long longest = 0;
    for (int i = 1; i < memory.size(); i++) {
      longest = Math.max(longest, memory.get(i).time() - memory.get(i - 1).time());
    }
    assertThat(longest).isLessThan(2_000L * 10_000 / 10);
  }

  @Test
  void endedExecutorsStayInTheTotals() {
    int executors = 3 * ExecutorTable.MAX_ENDED;
    for (int i = 0; i < executors; i++) {
      report("" + i, false, "localBytes", 10);
      activity.ended("" + i, "killed");
    }
    report("0", true, "localBytes", 99);
    assertThat(activity.executors().rows()).hasSize(ExecutorTable.MAX_ENDED);
    assertThat(activity.executors().total("localBytes")).isEqualTo(10L * executors);
    assertThat(made.html("pageSize", "500"))
        .contains("executor 599 on host-599: killed")
        .contains("<td>599</td><td>host-599</td><td>ended</td>");
  }

  @Test
  void aLateReportOfAnEndedExecutorCounts() {
    report("1", false, "localBytes", 10);
    activity.ended("1", "killed");
    report("1", true, "localBytes", 25);
    assertThat(activity.executors().total("localBytes")).isEqualTo(25);
    assertThat(activity.executors().rows()).extracting(ExecutorRow::running).containsExactly(false);
  }

  @Test
  void repeatedEventsAreOneAndOldOnesGo() {
    for (int i = 0; i < 1000; i++) {
      made.clock.addAndGet(1000);
      activity.pressed("3");
    }
    TimeLine.Event event = activity.timeLine().events().get(0);
    assertThat(activity.timeLine().events()).hasSize(1);
    assertThat(event.count()).isEqualTo(1000);
    assertThat(event.last() - event.first()).isEqualTo(999_000);
    for (int i = 0; i < 2 * TimeLine.MAX_EVENTS; i++) {
      activity.failed("x".repeat(10_000) + i);
      activity.failed(i + "x".repeat(10_000));
    }
    assertThat(activity.timeLine().events())
        .hasSize(TimeLine.MAX_EVENTS)
        .allSatisfy(e -> assertThat(e.text().length()).isLessThan(410));
  }

  @Test
  void manyEventsOfOneKindDoNotPushOutOthers() {
    activity.switchedOff("too many failures");
    activity.fellBack("it is off");
    for (int i = 0; i < 2 * TimeLine.MAX_EVENTS; i++) {
      activity.pressed("" + i);
      activity.failed("failure " + i);
    }
    assertThat(activity.timeLine().events())
        .hasSize(TimeLine.MAX_EVENTS)
        .extracting(TimeLine.Event::text)
        .contains("new shuffles go through Spark's sort shuffle: too many failures")
        .contains("Spark's sort shuffle carries a shuffle: it is off")
        .contains("failure " + (2 * TimeLine.MAX_EVENTS - 1))
        .doesNotContain("failure 0");
  }

  /** Half a character could not be written to the log as UTF-8. */
  @Test
  void longTextsAreCutBetweenCharacters() {
    activity.failed("x" + "\uD83D\uDE00".repeat(1000));
    ActivityEvent event = activity.takeChanges(made.overview(), true);
    assertThat(JsonProtocol.sparkEventFromJson(JsonProtocol.sparkEventToJsonString(event)))
        .isEqualTo(event);
  }

  @Test
  void collectivesOfAllExecutorsAddUp() {
    for (int i = 0; i < 2 * ExecutorTable.MAX_ENDED; i++) {
      ExecutorReport report =
          new ExecutorReport(
              "" + i,
              "host",
              Map.of(
                  "collectiveCallsRing", 2L,
                  "collectiveBytesRing", 1024L,
                  "collectiveNanosRing", 5_000_000L));
      activity.reported(new Report(report, TrafficReport.NONE, false), false);
      activity.ended("" + i, "killed");
    }
    assertThat(made.overview().collectives())
        .containsExactly(new CollectiveRow("Ring", 800, 409_600, 2_000_000_000L));
    assertThat(made.html()).contains("<td>Ring</td><td>800</td><td>400.0 KiB</td><td>2.0 s</td>");
    assertThat(StatusJson.of(made.contents(), MadeUpActivity.request()))
        .contains("\"algorithm\":\"Ring\",\"calls\":800");
  }

  @Test
  void migratedAndAdoptedOutputsAreEvents() {
    report("1", false, "outputsMigrated", 5);
    report("1", false, "outputsMigrated", 5);
    report("1", false, "outputsMigrated", 7);
    activity.adopted("1", "0", 3);
    assertThat(activity.timeLine().events())
        .extracting(TimeLine.Event::text)
        .containsExactly(
            "executor 1 received 5 map outputs of decommissioned executors",
            "executor 1 received 2 map outputs of decommissioned executors",
            "executor 1 adopted 3 map outputs of executor 0, which died");
  }

  /** What a history server reads is what the driver had, in how many steps it may be logged. */
  @Test
  void theEventLogCarriesEverything() {
    Activity read = new Activity();
    for (int step = 0; step < 5; step++) {
      made.clock.addAndGet(5_000);
      for (int i = 0; i <= step; i++) {
        made.shuffle(10 * step + i);
        made.report(i, 5, 10 * step, 1);
      }
      activity.failed("failure in step " + step / 2);
      String json =
          JsonProtocol.sparkEventToJsonString(activity.takeChanges(made.overview(), step % 2 == 0));
      assertThat(json).contains("\"Event\":\"io.weft.spark.ui.ActivityEvent\"");
      read.apply((ActivityEvent) JsonProtocol.sparkEventFromJson(json));
    }
    assertThat(read.all(made.overview())).isEqualTo(activity.all(made.overview()));
    assertThat(StatusJson.read(StatusJson.write(read.all(made.overview()))))
        .isEqualTo(activity.all(made.overview()));
    assertThat(activity.takeChanges(made.overview(), true))
        .isEqualTo(new ActivityEvent(made.overview(), List.of(), List.of(), null, List.of()));
  }

  /** A later version may add figures, an earlier one may lack them. */
  @Test
  void logsOfOtherVersionsAreRead() {
    String json =
        """
        {"Event":"io.weft.spark.ui.ActivityEvent","later":{"a":1},
         "shuffles":[{"id":3,"rows":7,"later":1}],
         "executors":[{"id":"1","running":true}],
         "events":[{"first":1,"last":2,"count":1,"kind":"of a later version"}]}
        """;
    made.activity.apply((ActivityEvent) JsonProtocol.sparkEventFromJson(json));
    assertThat(activity.shuffles().rows().get(0).rows()).isEqualTo(7);
    assertThat(made.html()).contains("of a later version");
  }
}
