package io.weft.tests.workload;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.unsafe.types.UTF8String;

/** A user-defined type over a struct with an array in it, as machine learning vectors are. */
public final class PointType extends UserDefinedType<Point> {
  private static final long serialVersionUID = 1L;

  @Override
  public DataType sqlType() {
    return new StructType()
        .add("coordinates", DataTypes.createArrayType(DataTypes.DoubleType, false))
        .add("label", DataTypes.StringType);
  }

  @Override
  public InternalRow serialize(Point point) {
    GenericArrayData coordinates = new GenericArrayData(new double[] {point.x(), point.y()});
    return new GenericInternalRow(new Object[] {coordinates, UTF8String.fromString(point.label())});
  }

  @Override
  public Point deserialize(Object datum) {
    InternalRow row = (InternalRow) datum;
    double[] coordinates = row.getArray(0).toDoubleArray();
    return new Point(coordinates[0], coordinates[1], row.getUTF8String(1).toString());
  }

  @Override
  public Class<Point> userClass() {
    return Point.class;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PointType;
  }

  @Override
  public int hashCode() {
    return PointType.class.hashCode();
  }
}
