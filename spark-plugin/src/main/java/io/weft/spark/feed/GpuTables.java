package io.weft.spark.feed;

import io.weft.collectives.DataType;
import io.weft.device.cuda.DeviceUploads;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.arrow.TensorColumn;
import io.weft.tensor.TensorType;
import java.util.ArrayList;
import java.util.List;

/**
 * The columns of a feed as device tables: its numbers and its tensors of fixed shape, none of them
 * with nulls. Immutable.
 */
final class GpuTables {
  private final List<GpuBatchLayout.Place> places;
  private final List<TableColumn> columns;
  private final int[] keys;

  private GpuTables(List<GpuBatchLayout.Place> places, List<String> keyNames) {
    this.places = places;
    this.columns = places.stream().map(place -> type(place.column())).toList();
    List<String> names = places.stream().map(place -> place.column().name()).toList();
    this.keys = keyNames.stream().mapToInt(names::indexOf).toArray();
  }

  /** Creates the tables of a feed between GPUs. */
  static GpuTables of(FeedSpec spec) {
    return new GpuTables(GpuBatchLayout.of(spec).columns(), spec.onGpus().keys());
  }

  private static TableColumn type(TensorColumn column) {
    return column.source() == TensorColumn.Source.NUMBER
        ? TableColumn.of(kind(column.dtype()), false)
        : TableColumn.tensors(TensorType.of(column.dtype(), column.shape()), false);
  }

  private static ColumnKind kind(DataType dtype) {
    return switch (dtype) {
      case INT8 -> ColumnKind.BYTE;
      case INT16 -> ColumnKind.SHORT;
      case INT32 -> ColumnKind.INT;
      case INT64 -> ColumnKind.LONG;
      case FLOAT32 -> ColumnKind.FLOAT;
      case FLOAT64 -> ColumnKind.DOUBLE;
      default -> throw new IllegalArgumentException("a Spark number is never a " + dtype);
    };
  }

  /**
   * Returns whether the device can hash a feed by these columns: all must be numbers of the feed.
   *
   * @param keyNames empty for a feed without keys
   */
  static boolean canHash(GpuBatchLayout layout, List<String> keyNames) {
    return !keyNames.isEmpty()
        && keyNames.stream()
            .allMatch(
                key ->
                    layout.columns().stream()
                        .map(GpuBatchLayout.Place::column)
                        .anyMatch(
                            column ->
                                column.name().equals(key)
                                    && column.source() == TensorColumn.Source.NUMBER));
  }

  /**
   * Returns whether the device computes a row's rank as a hash; otherwise the rank is uploaded with
   * the row.
   */
  boolean isHashed() {
    return keys.length > 0;
  }

  /** Numbers of the columns that are hashed, in their order. */
  int[] keys() {
    return keys.clone();
  }

  /** The layout of a table with this number of rows. */
  TableLayout layout(int rows) {
    return TableLayout.fixed(columns, rows);
  }

  /**
   * Returns the runs of a chunk to upload.
   *
   * @throws IllegalStateException if a value is null
   */
  List<DeviceUploads.Run> runs(ChunkView chunk, TableLayout layout) {
    List<DeviceUploads.Run> runs = new ArrayList<>();
    for (int c = 0; c < places.size(); c++) {
      long values = places.get(c).column().in(chunk).buffer().address();
      runs.add(new DeviceUploads.Run(values, layout.data(c), layout.dataBytes(c)));
    }
    return runs;
  }
}
