package ai.rapids.cudf;

/** Columns of types that no batch has. */
public final class TestColumns {
  private TestColumns() {}

  /** A column without rows. */
  public static ColumnVector empty(DType type) {
    int id = type.getTypeId().getNativeId();
    return new ColumnVector(ColumnVector.makeEmptyCudfColumn(id, type.getScale()));
  }
}
