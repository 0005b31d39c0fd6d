package io.weft.shuffle.device;

import io.weft.tensor.TensorType;
import java.util.Locale;

/**
 * The type of one column.
 *
 * @param tensor the type of one row of a {@link ColumnKind#TENSOR}, null for all other kinds
 * @param nullable whether it has validity bits
 */
public record TableColumn(ColumnKind kind, TensorType tensor, boolean nullable) {
  public TableColumn {
    if ((kind == ColumnKind.TENSOR) != (tensor != null)) {
      throw new IllegalArgumentException(kind + " with rows of " + tensor);
    }
  }

  /** Creates a column of values of one kind. */
  public static TableColumn of(ColumnKind kind, boolean nullable) {
    return new TableColumn(kind, null, nullable);
  }

  /**
   * Creates a column whose rows are tensors.
   *
   * @param row the type of one of them
   */
  public static TableColumn tensors(TensorType row, boolean nullable) {
    return new TableColumn(ColumnKind.TENSOR, row, nullable);
  }

  /** Bytes of one value; 0 for strings. */
  public long width() {
    return tensor == null ? kind.bytes() : tensor.bytes();
  }

  /** A text such as "int", "string?" for a nullable column, or "float32[16]". */
  @Override
  public String toString() {
    String name = tensor == null ? kind.name().toLowerCase(Locale.ROOT) : "" + tensor;
    return nullable ? name + "?" : name;
  }
}
