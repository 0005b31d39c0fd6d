package io.weft.spark.gpu;

import io.weft.collectives.buffer.DataType;
import io.weft.device.cuda.DeviceUploads.Run;
import io.weft.memory.Memory;
import io.weft.spark.columns.BlockColumnVector;
import io.weft.spark.columns.ChunkView;
import io.weft.table.TableColumn;
import io.weft.table.TableLayout;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/**
 * The sections of a table as runs of a chunk. Most are used in place. Booleans are converted from
 * bits to bytes, and tensor columns with nulls are copied, because nulls have no values in a chunk.
 * Owns these copies. Immutable.
 *
 * @param layout of the table; columns without nulls have no validity
 * @param runs in the order of their offsets
 * @param scratch the copies
 */
record UploadRuns(TableLayout layout, List<Run> runs, List<Tensor> scratch)
    implements AutoCloseable {

  /**
   * Finds the sections of a chunk with rows. The chunk must stay valid as long as the result.
   *
   * @param place of the rows, for errors
   * @throws IllegalArgumentException if a tensor does not have the shape that its column declares
   */
  static UploadRuns of(ChunkView chunk, StructType schema, RowPlace place) {
    UploadRuns made = new UploadRuns(layoutOf(chunk, schema), new ArrayList<>(), new ArrayList<>());
    try {
      for (int c = 0; c < chunk.columns(); c++) {
        made.add(c, chunk.column(c), schema.fields()[c].name(), place);
      }
      return made;
    } catch (RuntimeException | Error e) {
      made.close();
      throw e;
    }
  }

  private static TableLayout layoutOf(ChunkView chunk, StructType schema) {
    List<TableColumn> columns = new ArrayList<>();
    long[] strings = new long[chunk.columns()];
    for (int c = 0; c < chunk.columns(); c++) {
      BlockColumnVector column = chunk.column(c);
      TableColumn type = TableTypes.column(schema.fields()[c], column.hasNull()).orElseThrow();
      columns.add(type);
      strings[c] = type.kind().isString() ? column.offset(chunk.rows()) - column.offset(0) : 0;
    }
    return TableLayout.of(columns, chunk.rows(), strings);
  }

  private void add(int c, BlockColumnVector column, String name, RowPlace place) {
    TableColumn type = layout.columns().get(c);
    int rows = layout.rows();
    if (type.nullable()) {
      runs.add(new Run(column.validity(), layout.validity(c), (rows + 7L) / 8));
    }
    if (type.kind().isString()) {
      runs.add(new Run(column.offsets(), layout.offsets(c), (rows + 1L) * Integer.BYTES));
    }
    long values =
        switch (type.kind()) {
          case BOOLEAN -> bytes(column);
          case TENSOR -> tensors(new TensorRows(column, type.tensor(), rows), name, place);
          default -> column.values();
        };
    runs.add(new Run(values, layout.data(c), layout.dataBytes(c)));
  }

  private long tensors(TensorRows tensors, String name, RowPlace place) {
    tensors.verify(name, place);
    if (tensors.areDense()) {
      return tensors.values();
    }
    Tensor made = tensors.spread();
    scratch.add(made);
    return made.address();
  }

  private long bytes(BlockColumnVector booleans) {
    Tensor made = Tensor.allocate(TensorType.of(DataType.INT8, layout.rows()));
    scratch.add(made);
    for (int row = 0; row < layout.rows(); row++) {
      Memory.putByte(made.address() + row, (byte) (booleans.getBoolean(row) ? 1 : 0));
    }
    return made.address();
  }

  @Override
  public void close() {
    scratch.forEach(Tensor::close);
  }
}
