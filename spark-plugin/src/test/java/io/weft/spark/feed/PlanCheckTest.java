package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.feed.FeedPlan.PlanCheck;
import java.util.Set;
import org.apache.spark.sql.types.StructType;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Written rows compared with the plan: two map tasks, two ranks, batches of 10. */
class PlanCheckTest {
  private static final FeedSpec SPEC =
      new FeedSpec(
          new StructType().add("x", "int"),
          2,
          10,
          false,
          null,
          LastBatch.KEEP,
          FeedSpec.DumpAt.NEVER);

  private final PlanCheck check = new PlanCheck(FeedPlan.of(SPEC, new int[][] {{20, 3}, {10, 0}}));

  private static void assertOther(ThrowingCallable call, String said) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(
            said
                + " when it was run again: the data of a feed must not depend on the order of"
                + " unordered input");
  }

  @Test
  void plannedRowsPass() {
    check.wroteTo(0, Set.of(0, 1));
    check.wroteTo(1, Set.of(0));
    check.chunk(0, 0, 0, 10);
    check.chunk(0, 0, 1, 10);
    check.end(0, 0, 2);
    check.chunk(0, 1, 0, 3);
    check.end(0, 1, 1);
    check.end(1, 1, 0);
  }

  @Test
  void aChunkOfOtherRowsIsNamed() {
    assertOther(
        () -> check.chunk(0, 1, 0, 4),
        "map task 0 wrote 4 rows instead of 3 rows to chunk 0 of rank 1");
    assertOther(
        () -> check.chunk(0, 0, 1, 1),
        "map task 0 wrote 1 row instead of 10 rows to chunk 1 of rank 0");
  }

  @Test
  void aChunkThatWasNotPlannedIsNamed() {
    assertOther(
        () -> check.chunk(1, 0, 1, 2),
        "map task 1 wrote 2 rows instead of nothing to chunk 1 of rank 0");
  }

  @Test
  void aChunkThatIsMissingIsNamed() {
    assertOther(
        () -> check.end(0, 0, 1),
        "map task 0 wrote nothing instead of 10 rows to chunk 1 of rank 0");
  }

  @Test
  void rowsInAnUnreadPartitionAreDetected() {
    assertOther(
        () -> check.wroteTo(1, Set.of(0, 1)), "map task 1 wrote rows instead of nothing to rank 1");
  }

  @Test
  void anUnexpectedlyEmptyPartitionIsDetected() {
    assertOther(
        () -> check.wroteTo(0, Set.of(1)), "map task 0 wrote nothing instead of 20 rows to rank 0");
  }
}
