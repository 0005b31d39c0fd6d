package io.weft.spark.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.List;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.junit.jupiter.api.Test;

/** Columns of a table on the host. */
class TableColumnVectorTest {
  /** A batch that becomes small chunks asks for each of them. */
  @Test
  void nullsAreCountedOnce() {
    TableLayout layout = TableLayout.fixed(List.of(TableColumn.of(ColumnKind.INT, true)), 8);
    StructType schema = new StructType().add("number", DataTypes.IntegerType);
    try (Tensor table = Tensor.allocate(TensorType.of(DataType.INT8, layout.bytes()))) {
      Memory.putByte(table.address() + layout.validity(0), (byte) 0b1111_0101);
      ColumnVector column = TableColumnVector.all(schema, table.address(), layout)[0];
      assertThat(column.numNulls()).isEqualTo(2);
      Memory.putByte(table.address() + layout.validity(0), (byte) -1);
      assertThat(column.numNulls()).as("without a look at the rows").isEqualTo(2);
      assertThat(column.hasNull()).isTrue();
    }
  }
}
