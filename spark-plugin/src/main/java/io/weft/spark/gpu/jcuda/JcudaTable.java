package io.weft.spark.gpu.jcuda;

import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Columns of equally many rows in memory of a device.
 *
 * @param rows 0 or more
 * @param columns in the order of the schema
 */
public record JcudaTable(int rows, List<JcudaColumn> columns) {
  /** Copies the list. */
  public JcudaTable {
    columns = List.copyOf(columns);
  }

  /** Creates a table, such as the result of a function. */
  public static JcudaTable of(int rows, JcudaColumn... columns) {
    return new JcudaTable(rows, List.of(columns));
  }

  /** The column at this place of the schema, from 0. */
  public JcudaColumn column(int place) {
    return columns.get(place);
  }

  /** Creates a view of a table in the same memory. */
  static JcudaTable view(DeviceTable batch) {
    TableLayout layout = batch.layout();
    long run = batch.address();
    List<JcudaColumn> columns = new ArrayList<>();
    for (int c = 0; c < layout.columns().size(); c++) {
      boolean nullable = layout.columns().get(c).nullable();
      boolean strings = layout.columns().get(c).kind().isString();
      columns.add(
          new JcudaColumn(
              nullable ? JcudaPointers.pointer(run + layout.validity(c)) : null,
              strings ? JcudaPointers.pointer(run + layout.offsets(c)) : null,
              JcudaPointers.pointer(run + layout.data(c)),
              layout.dataBytes(c)));
    }
    return new JcudaTable(layout.rows(), columns);
  }
}
