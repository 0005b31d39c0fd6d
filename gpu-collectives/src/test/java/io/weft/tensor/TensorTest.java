package io.weft.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class TensorTest {
  private static final TensorType MATRIX = TensorType.of(DataType.INT32, 3, 4);

  private static Tensor counted() {
    Tensor tensor = Tensor.allocate(MATRIX);
    for (int i = 0; i < 12; i++) {
      Memory.putInt(tensor.address() + 4L * i, i);
    }
    return tensor;
  }

  @Test
  void startsWithZerosAndShowsItsBytesInPlace() {
    try (Tensor tensor = Tensor.allocate(MATRIX)) {
      ByteBuffer bytes = tensor.byteBuffer();
      assertThat(bytes.isDirect()).isTrue();
      assertThat(bytes.order()).isEqualTo(ByteOrder.nativeOrder());
      assertThat(bytes.remaining()).isEqualTo(48);
      assertThat(Memory.addressOf(bytes)).isEqualTo(tensor.address());
      assertThat(bytes.getInt(44)).isZero();
      Memory.putInt(tensor.address() + 44, 5);
      assertThat(bytes.getInt(44)).isEqualTo(5);
    }
  }

  @Test
  void rowsAreViewsOfTheSameMemory() {
    try (Tensor tensor = counted()) {
      Tensor row = tensor.row(2);
      assertThat(row.type()).isEqualTo(TensorType.of(DataType.INT32, 4));
      assertThat(row.address()).isEqualTo(tensor.address() + 32);
      assertThat(row.byteBuffer().getInt(0)).isEqualTo(8);
      assertThat(row.row(3).byteBuffer().getInt(0)).isEqualTo(11);
      Tensor rows = tensor.rows(1, 2);
      assertThat(rows.type()).isEqualTo(TensorType.of(DataType.INT32, 2, 4));
      assertThat(rows.byteBuffer().getInt(0)).isEqualTo(4);
      assertThat(tensor.rows(3, 0).type().elements()).isZero();
      row.close();
      assertThat(tensor.row(0).byteBuffer().getInt(4)).isEqualTo(1);
    }
  }

  @Test
  void missingRowsAreRefused() {
    try (Tensor tensor = counted()) {
      assertThatThrownBy(() -> tensor.row(3)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> tensor.row(-1)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> tensor.rows(2, 2)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> tensor.rows(1, Long.MAX_VALUE))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @Test
  void noAccessAfterClose() {
    Tensor tensor = counted();
    Tensor row = tensor.row(1);
    tensor.close();
    tensor.close();
    assertThatThrownBy(tensor::buffer)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("the tensor int32[3, 4] has been closed");
    assertThatThrownBy(tensor::byteBuffer).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(row::address).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> tensor.row(0)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void ownedMemoryIsReleasedOnce() {
    AtomicInteger released = new AtomicInteger();
    ByteBuffer memory = ByteBuffer.allocateDirect(48);
    Tensor tensor =
        Tensor.owned(MATRIX, TypedBuffer.wrap(memory, DataType.INT32), released::incrementAndGet);
    tensor.row(0).close();
    assertThat(released).hasValue(0);
    tensor.close();
    tensor.close();
    assertThat(released).hasValue(1);
  }

  @Test
  void aFailedReleaseIsReportedWithTheType() {
    Tensor tensor =
        Tensor.owned(
            TensorType.of(DataType.INT8, 0),
            TypedBuffer.empty(DataType.INT8),
            () -> {
              throw new IOException("no");
            });
    assertThatThrownBy(tensor::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("int8[0]")
        .hasRootCauseMessage("no");
  }

  @Test
  void aViewLeavesTheBufferToItsOwner() {
    ByteBuffer memory = ByteBuffer.allocateDirect(48);
    Tensor view = Tensor.of(TypedBuffer.wrap(memory, DataType.INT32), 4, 3);
    view.close();
    assertThat(view.byteBuffer().remaining()).isEqualTo(48);
    assertThatThrownBy(() -> Tensor.of(TypedBuffer.wrap(memory, DataType.INT32), 5, 3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("int32[5, 3]");
    assertThatThrownBy(
            () -> Tensor.of(MATRIX, TypedBuffer.wrap(memory, DataType.INT32).as(DataType.FLOAT32)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void theEmptyTensorIsShared() {
    for (DataType dtype : DataType.values()) {
      Tensor empty = Tensor.empty(dtype);
      empty.close();
      assertThat(Tensor.empty(dtype)).isSameAs(empty);
      assertThat(empty.type()).isEqualTo(TensorType.of(dtype, 0));
      assertThat(empty.byteBuffer().remaining()).isZero();
    }
  }

  @Test
  void tensorsWithoutElementsTakeNoMemory() {
    try (Tensor none = Tensor.allocate(TensorType.of(DataType.FLOAT32, 5, 0, 7))) {
      assertThat(none.byteBuffer().hasRemaining()).isFalse();
      assertThat(none.row(4).type()).isEqualTo(TensorType.of(DataType.FLOAT32, 0, 7));
    }
  }

  @Test
  void moreBytesThanABufferHoldsAreReadByRows() {
    TensorType large = TensorType.of(DataType.INT8, 2, Integer.MAX_VALUE);
    try (Tensor tensor =
        Tensor.of(large, TypedBuffer.at(1 << 20, DataType.INT8, large.elements()))) {
      assertThatThrownBy(tensor::byteBuffer)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("int8[2, 2147483647]");
      assertThat(tensor.row(1).byteBuffer().remaining()).isEqualTo(Integer.MAX_VALUE);
      assertThat(tensor.row(1).address()).isEqualTo((1 << 20) + (long) Integer.MAX_VALUE);
    }
  }

  @Test
  void aBufferKeepsTheMemoryThatItShows() {
    Tensor tensor = counted();
    ByteBuffer slice = tensor.row(2).byteBuffer().slice(4, 4).order(ByteOrder.nativeOrder());
    WeakReference<Tensor> gone = new WeakReference<>(tensor);
    WeakReference<Object> owner = new WeakReference<>(tensor.buffer().owner());
    tensor = null;
    await()
        .atMost(Duration.ofSeconds(60))
        .until(
            () -> {
              System.gc();
              return gone.get() == null;
            });
    assertThat(owner.get()).isNotNull();
    assertThat(slice.getInt(0)).isEqualTo(9);
  }

  @Test
  void anUnreachableTensorIsFreedByTheCollector() {
    WeakReference<Object> owner = new WeakReference<>(counted().buffer().owner());
    await()
        .atMost(Duration.ofSeconds(60))
        .until(
            () -> {
              System.gc();
              return owner.get() == null;
            });
  }

  @Test
  void slabsShareBlocksAmongSmallTensorsOnly() {
    TensorSlab slab = new TensorSlab();
    TensorType small = TensorType.of(DataType.INT8, 1000);
    Tensor first = slab.allocate(small);
    Tensor second = slab.allocate(small);
    assertThat(second.buffer().owner()).isSameAs(first.buffer().owner());
    assertThat(second.address()).isEqualTo(first.address() + 1008);
    assertThat(first.buffer().overlaps(second.buffer())).isFalse();
    first.close();
    assertThat(second.byteBuffer().get(999)).isZero();
    Tensor large = slab.allocate(TensorType.of(DataType.INT8, 8193));
    assertThat(large.buffer().owner()).isNotSameAs(first.buffer().owner());
    assertThat(large.buffer().owner().bytes()).isEqualTo(8193);
    assertThat(slab.allocate(TensorType.of(DataType.INT8, 0)))
        .isSameAs(Tensor.empty(DataType.INT8));
    Tensor next = second;
    for (int i = 0; i < 100; i++) {
      Tensor before = next;
      next = slab.allocate(TensorType.of(DataType.INT8, 8192));
      assertThat(next.buffer().overlaps(before.buffer())).isFalse();
      assertThat(next.buffer().offset() + 8192).isLessThanOrEqualTo(64 << 10);
    }
  }
}
