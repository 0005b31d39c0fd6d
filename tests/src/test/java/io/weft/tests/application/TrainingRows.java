package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.PriceClasses;
import io.weft.examples.train.TrainingPlan;
import io.weft.spark.feed.WeftTensors;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/** Rows that a linear model can learn: the class is the largest of the first three features. */
public final class TrainingRows {
  /** In four map tasks of the same size. */
  public static final int ROWS = 4096;

  private static final ModelShape SHAPE = new ModelShape(6, List.of(), 3);

  private TrainingRows() {}

  /** Returns the same rows in every run. */
  public static Dataset<Row> of(SparkSession session) {
    return session
        .range(0, ROWS, 1, 4)
        .selectExpr(
            "transform(sequence(0, 5),"
                + " i -> CAST(pmod(xxhash64(id, i), 2001) / 1000D - 1 AS FLOAT)) AS features")
        .selectExpr(
            "features",
            "CAST(array_position(features, array_max(slice(features, 1, 3))) - 1 AS INT) AS label")
        .select(
            WeftTensors.column(PriceClasses.FEATURES, DataType.FLOAT32, 6),
            functions.col(PriceClasses.LABEL));
  }

  /**
   * A plan of a training on these rows.
   *
   * @param checkpointSteps steps between two checkpoints
   */
  public static TrainingPlan plan(Path folder, int epochs, int checkpointSteps) {
    return new TrainingPlan(SHAPE, epochs, 1, 0.05, 1 << 10, folder.toString(), checkpointSteps);
  }
}
