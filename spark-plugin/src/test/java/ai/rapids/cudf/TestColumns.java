package ai.rapids.cudf;

/** Columns of types that no batch has. */
public final class TestColumns {
  private TestColumns() {}

  /** A column without rows. */
  public static ColumnVector empty(DType.DTypeEnum type, int scale) {
    return new ColumnVector(ColumnVector.makeEmptyCudfColumn(type.getNativeId(), scale));
  }
}
