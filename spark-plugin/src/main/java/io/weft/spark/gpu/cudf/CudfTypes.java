package io.weft.spark.gpu.cudf;

import ai.rapids.cudf.DType;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.TableColumn;
import io.weft.spark.gpu.TableTypes;
import java.util.Optional;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Maps table columns to cudf types. Stateless. */
final class CudfTypes {
  private CudfTypes() {}

  /**
   * Verifies that rows can be cudf tables; loads no class of cudf.
   *
   * @throws IllegalArgumentException naming the first column that has no cudf type
   */
  static void requireTypes(StructType schema) {
    Optional<String> obstacle = TableTypes.obstacle(schema);
    if (obstacle.isPresent()) {
      throw new IllegalArgumentException("batches cannot be tables of cudf: " + obstacle.get());
    }
    for (StructField field : schema.fields()) {
      if (column(field).kind() == ColumnKind.TENSOR) {
        throw tensors(field);
      }
    }
  }

  private static TableColumn column(StructField field) {
    return TableTypes.column(field, true).orElseThrow();
  }

  private static IllegalArgumentException tensors(StructField field) {
    return new IllegalArgumentException(
        ("batches cannot be tables of cudf: column %s has tensors, of %s. Lists of cudf have"
                + " offsets, which tensors of one shape do not")
            .formatted(field.name(), column(field).tensor()));
  }

  /**
   * The type of a column. Binary is a list of {@link DType#UINT8}.
   *
   * @throws IllegalArgumentException if its values are tensors
   */
  static DType of(StructField field) {
    DataType type = field.dataType();
    return switch (column(field).kind()) {
      case BOOLEAN -> DType.BOOL8;
      case BYTE -> DType.INT8;
      case SHORT -> DType.INT16;
      case INT -> DType.INT32;
      case LONG -> DType.INT64;
      case FLOAT -> DType.FLOAT32;
      case DOUBLE -> DType.FLOAT64;
      case DATE -> DType.TIMESTAMP_DAYS;
      case TIMESTAMP -> DType.TIMESTAMP_MICROSECONDS;
      case DECIMAL64 -> decimal(DType.DTypeEnum.DECIMAL64, (DecimalType) type);
      case DECIMAL128 -> decimal(DType.DTypeEnum.DECIMAL128, (DecimalType) type);
      case STRING -> DType.STRING;
      case BINARY -> DType.LIST;
      case TENSOR -> throw tensors(field);
    };
  }

  /** A cudf scale is the exponent, so the negative of Spark's. */
  private static DType decimal(DType.DTypeEnum id, DecimalType type) {
    return DType.create(id, -type.scale());
  }
}
