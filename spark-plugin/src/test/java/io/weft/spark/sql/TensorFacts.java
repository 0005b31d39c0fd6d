package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;

import io.weft.collectives.DataType;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.WeftTensors;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** Tensor columns of every type, some with nulls, and other columns. */
final class TensorFacts {
  private TensorFacts() {}

  static Column tensor(String name, DataType dtype, long... shape) {
    return WeftTensors.column(name, dtype, shape);
  }

  static Dataset<Row> of(LocalSpark spark, int rows, int partitions) {
    return spark
        .session()
        .range(0, rows, 1, partitions)
        .selectExpr(
            "id",
            "if(id % 13 = 0, null, concat('key ', id % 211)) k",
            "transform(sequence(0, 5), i -> cast(id + i as float)) f",
            "if(id % 3 = 0, null, transform(sequence(0, 2), i -> id * i / 7.0d)) d",
            "transform(sequence(0, 4), i -> cast((id + i) % 100 as tinyint)) b",
            "if(id % 5 = 0, null, transform(sequence(0, 6), i -> cast(id * i as smallint))) half",
            "transform(sequence(0, 0), i -> cast(-id as int)) one",
            "if(id % 7 < 5, null, transform(sequence(0, 3), i -> id * 1000000007 + i)) l",
            "if(id % 11 = 0, null, unhex(lpad(hex(id), 12, '0'))) bytes",
            "cast(null as array<float>) never")
        .select(
            col("id"),
            col("k"),
            tensor("f", DataType.FLOAT32, 2, 3),
            tensor("d", DataType.FLOAT64, 3),
            tensor("b", DataType.INT8, 5),
            tensor("half", DataType.FLOAT16, 7),
            tensor("one", DataType.INT32, 1),
            tensor("l", DataType.INT64, 2, 2),
            tensor("bytes", DataType.INT16, 3),
            tensor("never", DataType.FLOAT32, 9));
  }
}
