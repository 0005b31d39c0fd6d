package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.spark.config.NoRepeat;
import io.weft.spark.feed.FeedReports.RankFailure;
import io.weft.spark.runtime.Messages.FeedRankReport;
import io.weft.transfers.TransferException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.TaskKilledException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Classifies failures by their cause. */
class RankFailureTest {
  private static boolean own(Throwable error) {
    return RankFailure.of(0, 1, error).own();
  }

  @Test
  void anExceptionOfTheFunctionIsItsOwnFailure() {
    assertThat(own(new IllegalArgumentException("label 9"))).isTrue();
    assertThat(own(new AssertionError("label 9"))).isTrue();
    assertThat(own(new Exception("a", new NullPointerException()))).isTrue();
  }

  @Test
  void aLossAroundTheFunctionIsNotItsOwnFailure() {
    assertThat(own(new UncheckedIOException(new IOException("no room")))).isFalse();
    assertThat(own(new IllegalStateException("a", new InterruptedException()))).isFalse();
    assertThat(own(new TransferException("the peer is gone"))).isFalse();
    assertThat(own(new TaskKilledException("another attempt"))).isFalse();
    assertThat(own(new OutOfMemoryError())).isFalse();
  }

  @ParameterizedTest
  @EnumSource
  void onlyMistakesInCollectivesAreOwnFailures(Kind kind) {
    CollectiveException failure = new CollectiveException(kind, List.of(1), "all-reduce #3");
    boolean mistake = kind == Kind.INVALID || kind == Kind.MISMATCH;
    assertThat(own(new IllegalStateException("step 7", failure))).isEqualTo(mistake);
  }

  /** An attempt that ended because an executor was lost makes earlier attempts irrelevant. */
  @Test
  void theLastAttemptDecides() {
    RankFailure early = new RankFailure(0, 1, true, "early");
    RankFailure lost = new RankFailure(1, 0, false, "rank 1 is dead");
    RankFailure one = new RankFailure(2, 1, true, "late");
    RankFailure other = new RankFailure(2, 0, false, "aborted by rank 1");
    assertThat(RankFailure.decisive(List.of(), 0)).isEmpty();
    assertThat(RankFailure.decisive(List.of(early), 0)).contains(early);
    assertThat(RankFailure.decisive(List.of(early, lost), 1)).isEmpty();
    assertThat(RankFailure.decisive(List.of(lost, other, one, early), 2)).contains(one);
  }

  /** Happens if its executors or their rows were lost: no rank reports the cause. */
  @Test
  void anAttemptWithoutAReportedEndCounts() {
    List<String> ended = new ArrayList<>();
    try (FeedReports reports =
        FeedReports.open(7, (stage, reason) -> ended.add(stage + " " + reason))) {
      FeedReports.receive(new FeedRankReport(7, 0, 1, false, FeedRankReport.NONE, null));
      FeedReports.receive(new FeedRankReport(7, 0, 1, true, FeedRankReport.NONE, "label 9"));
      FeedReports.receive(new FeedRankReport(8, 5, 1, false, FeedRankReport.NONE, null));
      assertThat(reports.decisive()).contains(new RankFailure(0, 1, true, "label 9"));
      FeedReports.receive(new FeedRankReport(7, 1, 0, false, FeedRankReport.NONE, null));
      assertThat(reports.decisive()).isEmpty();
    }
    assertThat(ended).isEmpty();
    assertThat(FeedReports.of(7)).isEmpty();
    FeedReports.receive(new FeedRankReport(7, 0, 1, true, FeedRankReport.NONE, "too late"));
  }

  @Test
  void aCauseThatARepeatWouldMeetEndsTheStage() {
    List<String> ended = new ArrayList<>();
    try (FeedReports reports = FeedReports.open(7, (stage, why) -> ended.add(stage + " " + why))) {
      FeedReports.receive(new FeedRankReport(7, 0, 1, true, 3, "no memory"));
      FeedReports.receive(new FeedRankReport(8, 0, 1, true, 4, "another feed"));
      assertThat(reports.decisive()).contains(new RankFailure(0, 1, true, "no memory"));
    }
    assertThat(ended).containsExactly("3 no memory");
    assertThat(own(new IOException("a", new Lasting()))).isTrue();
    assertThat(NoRepeat.isIn(new IOException("a", new Lasting()))).isTrue();
    assertThat(NoRepeat.isIn(new IOException("a"))).isFalse();
  }

  @Test
  void aLateReportOfAnEarlierAttemptDoesNotEndThePresentOne() {
    List<Integer> ended = new ArrayList<>();
    try (FeedReports reports = FeedReports.open(7, (stage, why) -> ended.add(stage))) {
      FeedReports.receive(new FeedRankReport(7, 1, 0, false, FeedRankReport.NONE, null));
      FeedReports.receive(new FeedRankReport(7, 0, 1, true, 3, "no memory there"));
      assertThat(reports.decisive()).isEmpty();
    }
    assertThat(ended).isEmpty();
  }

  private static final class Lasting extends RuntimeException implements NoRepeat {
    private static final long serialVersionUID = 1L;
  }
}
