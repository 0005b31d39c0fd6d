package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Which target the generated code of a stage gets. */
class RowTargetTest {
  private static final long STAGE = 7;
  private static final int FIELDS = 2;
  private static final int ROW_BYTES = 3 * Long.BYTES;

  private final TaskContext task = TaskContext$.MODULE$.empty();
  private final RowTarget offered = new NoChunks();

  @BeforeEach
  void setTask() {
    TaskContext$.MODULE$.setTaskContext(task);
  }

  @AfterEach
  void unsetTask() {
    task.markTaskCompleted(scala.Option.empty());
    TaskContext$.MODULE$.unset();
  }

  @Test
  void onlyTheStageOfTheOfferGetsItsTarget() {
    assertThat(offered.offer(STAGE, () -> RowTarget.open(STAGE, FIELDS) == offered)).isTrue();
    assertThat(offered.offer(STAGE, () -> RowTarget.open(STAGE + 1, FIELDS) == offered)).isFalse();
  }

  @Test
  void anOfferEndsWithItsStep() {
    assertThat(offered.offer(STAGE, () -> true)).isTrue();
    assertThat(RowTarget.open(STAGE, FIELDS)).isNotSameAs(offered);
    assertThatThrownBy(
            () ->
                offered.offer(
                    STAGE,
                    () -> {
                      throw new IllegalStateException("a step that fails");
                    }))
        .hasMessage("a step that fails");
    assertThat(RowTarget.open(STAGE, FIELDS)).isNotSameAs(offered);
  }

  @Test
  void withoutAnOfferEachRowIsReturnedAsACopy() throws Exception {
    RowTarget target = RowTarget.open(STAGE, FIELDS);
    UnsafeRow first = row(target, 1);
    UnsafeRow second = row(target, 2);
    assertThat(first.getLong(1)).isEqualTo(1);
    assertThat(second.getLong(1)).isEqualTo(2);
    assertThat(target.write(second)).isEqualTo(second).isNotSameAs(second);
  }

  private static UnsafeRow row(RowTarget target, long value) throws Exception {
    long at = target.room(0, ROW_BYTES);
    Platform.putLong(null, at, 0);
    Platform.putLong(null, at + Long.BYTES, -value);
    Platform.putLong(null, at + 2 * Long.BYTES, value);
    return target.wrote(0, at, ROW_BYTES);
  }

  private static final class NoChunks extends RowTarget {
    @Override
    public long room(int partition, long bytes) {
      throw new UnsupportedOperationException();
    }

    @Override
    public UnsafeRow wrote(int partition, long address, long bytes) {
      throw new UnsupportedOperationException();
    }

    @Override
    public UnsafeRow write(UnsafeRow row) {
      throw new UnsupportedOperationException();
    }
  }
}
