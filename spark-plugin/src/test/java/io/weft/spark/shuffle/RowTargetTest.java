package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import scala.collection.AbstractIterator;

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

  /** The stage writes two rows itself and returns a third one. */
  @Test
  void packedRowsAreTakenWhetherWrittenOrReturned() throws Exception {
    List<Long> taken = new ArrayList<>();
    new Values(taken).takeAll(new Stage(), STAGE);
    assertThat(taken).containsExactly(1L, 2L, 3L);
    assertThat(RowTarget.open(STAGE, FIELDS)).isNotInstanceOf(Values.class);
  }

  @Test
  void rowsOfOtherCodeAreTaken() throws Exception {
    List<Long> taken = new ArrayList<>();
    new Values(taken).takeAll(new Stage(), 0);
    assertThat(taken).containsExactly(1L, 2L, 3L);
  }

  @Test
  void aTargetThatFailsEndsItsOffer() {
    assertThatThrownBy(() -> new Values(null).takeAll(new Stage(), STAGE))
        .isInstanceOf(NullPointerException.class);
    assertThat(RowTarget.open(STAGE, FIELDS)).isNotInstanceOf(Values.class);
  }

  /** Three rows, of which the first two are written to the target if there is one. */
  private static final class Stage extends AbstractIterator<InternalRow> {
    private final Deque<InternalRow> returned = new ArrayDeque<>();
    private RowTarget target;

    @Override
    public boolean hasNext() {
      if (target == null) {
        target = RowTarget.open(STAGE, FIELDS);
        for (long value = 1; value <= 2; value++) {
          UnsafeRow copy = write(value);
          if (copy != null) {
            returned.add(copy);
          }
        }
        returned.add(row(3));
      }
      return !returned.isEmpty();
    }

    private UnsafeRow write(long value) {
      try {
        return target.write(row(value));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private static UnsafeRow row(long value) {
      UnsafeRow row = new UnsafeRow(FIELDS);
      row.pointTo(new byte[ROW_BYTES], Platform.BYTE_ARRAY_OFFSET, ROW_BYTES);
      row.setLong(1, value);
      return row;
    }

    @Override
    public InternalRow next() {
      return returned.remove();
    }
  }

  /** The second column of the rows. */
  private static final class Values extends RowTarget.OfPacked {
    private final List<Long> taken;

    Values(List<Long> taken) {
      this.taken = taken;
    }

    @Override
    public UnsafeRow write(UnsafeRow row) {
      taken.add(row.getLong(1));
      return null;
    }
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
