package io.weft.spark.columns;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;

/** A user-defined type stored like the vectors of Spark's machine learning library. */
public final class VectorLikeUdt extends UserDefinedType<double[]> {
  private static final long serialVersionUID = 1L;

  @Override
  public DataType sqlType() {
    return new StructType()
        .add("type", DataTypes.ByteType, false)
        .add("size", DataTypes.IntegerType, true)
        .add("indices", DataTypes.createArrayType(DataTypes.IntegerType, false), true)
        .add("values", DataTypes.createArrayType(DataTypes.DoubleType, false), true);
  }

  @Override
  public Object serialize(double[] values) {
    throw new UnsupportedOperationException("Tests make the stored form themselves");
  }

  @Override
  public double[] deserialize(Object stored) {
    throw new UnsupportedOperationException("Tests compare the stored form");
  }

  @Override
  public Class<double[]> userClass() {
    return double[].class;
  }
}
