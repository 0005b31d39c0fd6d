package io.weft.spark.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.UniqueId;
import java.util.List;
import org.junit.jupiter.api.Test;

class DriverMeetingsTest {
  private static final MeetingKey KEY = new MeetingKey(3, 0);
  private static final MeetingKey RETRY = new MeetingKey(3, 1);

  private final DriverMeetings meetings = new DriverMeetings();

  @Test
  void aRoundIsCompleteWhenAllHaveCome() {
    MeetingAnswer first = meetings.answer(call(KEY, 0, "join", "a"));
    assertThat(first.messages()).isNull();
    assertThat(first.missing()).containsExactly(1);
    MeetingAnswer second = meetings.answer(call(KEY, 1, "join", "b"));
    assertThat(second.messages()).extracting(String::new).containsExactly("a", "b");
    assertThat(second.names()).containsExactly("task of 0", "task of 1");
    MeetingAnswer again = meetings.answer(call(KEY, 0, "join", "a").again());
    assertThat(again.messages()).extracting(String::new).containsExactly("a", "b");
    assertThat(again.id()).isEqualTo(first.id()).isEqualTo(second.id());
  }

  @Test
  void everyAttemptHasAnIdOfItsOwn() {
    UniqueId first = UniqueId.decode(meetings.answer(call(KEY, 0, "join", "")).id());
    UniqueId retry = UniqueId.decode(meetings.answer(call(RETRY, 0, "join", "")).id());
    assertThat(first).isNotEqualTo(retry);
  }

  @Test
  void aRoundIsForgottenOnceAllAreFurther() {
    meetings.answer(call(KEY, 0, "join", "a"));
    meetings.answer(call(KEY, 1, "join", "b"));
    meetings.answer(call(KEY, 0, "next", "c"));
    assertThat(meetings.answer(call(KEY, 1, "join", "b").again()).messages()).hasSize(2);
    meetings.answer(call(KEY, 1, "next", "d"));
    assertThat(meetings.answer(call(KEY, 1, "join", "b").again()).missing()).containsExactly(0, 1);
  }

  @Test
  void whoSparkSaysHasFailedFailsAllOthers() {
    meetings.stageStarted(KEY, 2);
    meetings.taskStarted(KEY, 1, "task 8 on executor 2 at host-b");
    meetings.taskFailed(KEY, 1, "failed: java.lang.IllegalStateException: boom");
    MeetingAnswer answer = meetings.answer(call(KEY, 0, "join", ""));
    assertThat(answer.failure())
        .isEqualTo(
            "rank 1 (task 8 on executor 2 at host-b) of barrier stage 3.0 failed:"
                + " java.lang.IllegalStateException: boom");
    assertThat(answer.culprits()).containsExactly(1);
  }

  @Test
  void whoGivesUpFailsAllOthersAndTheFirstReasonCounts() {
    meetings.answer(call(KEY, 0, "join", ""));
    meetings.answer(
        new MeetingCall(KEY, 1, 2, "task of 1", "failed", null, "got no communicator: no space"));
    meetings.taskFailed(KEY, 1, "failed later");
    assertThat(meetings.answer(call(KEY, 0, "join", "").again()).failure())
        .isEqualTo("rank 1 (task of 1) of barrier stage 3.0 got no communicator: no space");
  }

  @Test
  void anEndedAttemptIsForgottenAndItsLateTasksAreTurnedAway() {
    meetings.stageStarted(KEY, 2);
    meetings.stageEnded(KEY);
    assertThat(meetings.open()).isZero();
    MeetingAnswer late = meetings.answer(call(KEY, 1, "join", ""));
    assertThat(late.failure()).contains("task of 1", "barrier stage 3.0, which has ended");
    assertThat(meetings.open()).isZero();
    assertThat(meetings.answer(call(RETRY, 0, "join", "")).failure()).isNull();
    assertThat(meetings.open()).isOne();
  }

  @Test
  void aTaskThatCountsOtherTasksIsAnError() {
    meetings.stageStarted(KEY, 2);
    MeetingCall wrong = new MeetingCall(KEY, 2, 3, "task of 2", "join", new byte[0], null);
    assertThatThrownBy(() -> meetings.answer(wrong))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("barrier stage 3.0 has 2 tasks, but one came as 2 of 3");
  }

  @Test
  void stagesWithoutAMeetingAreNoConcern() {
    meetings.taskStarted(KEY, 0, "task 1");
    meetings.taskFailed(KEY, 0, "failed");
    assertThat(meetings.open()).isZero();
  }

  private static MeetingCall call(MeetingKey key, int rank, String round, String message) {
    return new MeetingCall(key, rank, 2, "task of " + rank, round, message.getBytes(), null);
  }

  @Test
  void namesAndRanksOfAllAreKnownFromTheStart() {
    meetings.stageStarted(KEY, 2);
    meetings.taskStarted(KEY, 1, "task 8 on executor 2 at host-b");
    assertThat(meetings.answer(call(KEY, 0, "join", "")).names())
        .isEqualTo(List.of("task of 0", "task 8 on executor 2 at host-b"));
  }
}
