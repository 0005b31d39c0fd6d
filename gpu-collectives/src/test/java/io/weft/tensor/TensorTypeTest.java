package io.weft.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import org.junit.jupiter.api.Test;

class TensorTypeTest {
  private static final TensorType MATRIX = TensorType.of(DataType.FLOAT32, 3, 1024);

  @Test
  void hasItsSizes() {
    assertThat(MATRIX.rank()).isEqualTo(2);
    assertThat(MATRIX.dimension(1)).isEqualTo(1024);
    assertThat(MATRIX.elements()).isEqualTo(3072);
    assertThat(MATRIX.bytes()).isEqualTo(12288);
    assertThat(MATRIX).hasToString("float32[3, 1024]");
    assertThatThrownBy(() -> MATRIX.dimension(2)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void oneElementHasNoDimensions() {
    TensorType scalar = TensorType.of(DataType.INT64);
    assertThat(scalar.elements()).isEqualTo(1);
    assertThat(scalar).hasToString("int64[]");
    assertThatThrownBy(scalar::row).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void rowsAreAddedAndRemovedInFront() {
    assertThat(MATRIX.withRows(7)).isEqualTo(TensorType.of(DataType.FLOAT32, 7, 3, 1024));
    assertThat(MATRIX.withRows(7).row()).isEqualTo(MATRIX);
  }

  @Test
  void isSharedAndCannotBeChangedFromOutside() {
    long[] shape = {5, 6};
    TensorType type = TensorType.of(DataType.INT8, shape);
    assertThat(TensorType.of(DataType.INT8, 5, 6)).isSameAs(type);
    shape[0] = 50;
    type.shape()[0] = 60;
    assertThat(type.dimension(0)).isEqualTo(5);
    assertThat(TensorType.of(DataType.INT8, 5, 6)).isEqualTo(type);
  }

  @Test
  void manyTypesEvictEachOtherAndStayCorrect() {
    for (int i = 0; i < 10_000; i++) {
      TensorType type = TensorType.of(DataType.INT16, i, 2);
      assertThat(type.dimension(0)).isEqualTo(i);
      assertThat(type).isEqualTo(TensorType.of(DataType.INT16, i, 2));
      assertThat(type).isNotEqualTo(TensorType.of(DataType.INT32, i, 2));
      assertThat(type).hasSameHashCodeAs(TensorType.of(DataType.INT16, i, 2));
    }
  }

  @Test
  void noElementsWhereOneSizeIsZeroHoweverLargeTheOthers() {
    assertThat(TensorType.of(DataType.FLOAT64, Long.MAX_VALUE, 2, 0).elements()).isZero();
  }

  @Test
  void moreBytesThanALongAreRefused() {
    assertThat(TensorType.of(DataType.INT8, Long.MAX_VALUE).bytes()).isEqualTo(Long.MAX_VALUE);
    assertThatThrownBy(() -> TensorType.of(DataType.INT16, Long.MAX_VALUE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("int16[9223372036854775807]");
    assertThatThrownBy(() -> TensorType.of(DataType.INT8, 1L << 32, 1L << 31))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MATRIX.withRows(1L << 60))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> TensorType.of(DataType.INT8, 3, -1))
        .hasMessageContaining("int8[3, -1]");
    assertThatThrownBy(() -> TensorType.of(DataType.INT8, new long[33])).hasMessageContaining("33");
  }

  @Test
  void isSerializable() throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(MATRIX);
    Object read = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
    assertThat(read).isSameAs(TensorType.of(DataType.FLOAT32, 3, 1024)).isEqualTo(MATRIX);
  }
}
