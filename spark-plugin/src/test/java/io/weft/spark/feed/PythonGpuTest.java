package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import io.weft.spark.GpuSpark;
import io.weft.spark.sql.DeviceFunctions;
import io.weft.spark.sql.WeftGpu;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.StorageLevel;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Queries that the Python package makes, in a session without Python. */
class PythonGpuTest {
  @RegisterExtension static final GpuSpark SPARK = new GpuSpark(Map.of());

  private static SparkSession session() {
    return SPARK.local().session();
  }

  /** Runs the queries of Python, each on the result of the one before it. */
  private static Dataset<Row> mapped(String name) throws Exception {
    Dataset<Row> result = null;
    int number = 0;
    for (JsonNode query : PythonScript.run("weft-gpu.py", PythonScript.PACKAGE, name)) {
      Map<String, Object> arguments = new HashMap<>();
      query
          .get("arguments")
          .properties()
          .forEach(e -> arguments.put(e.getKey(), e.getValue().asText()));
      result = session().sql(query.get("text").asText(), arguments);
      result.createOrReplaceTempView("result_" + ++number);
      query.get("dropped").forEach(view -> session().catalog().dropTempView(view.asText()));
    }
    return result;
  }

  @Test
  void batchesAreMappedByTheFunctionOfAName() throws Exception {
    Dataset<Row> trips = session().range(0, 300, 1, 3).selectExpr("id", "concat('trip ', id) s");
    trips.createOrReplaceTempView("trips");
    trips.cache();
    WeftGpu.register("it's {own} \\ name", trips.schema(), DeviceFunctions::copy);
    Dataset<Row> found = mapped("It's {own} \\ name");
    assertThat(found.collectAsList()).isEqualTo(trips.collectAsList());
    assertThat(found.queryExecution().executedPlan().toString())
        .containsSubsequence("ColumnarToRow", "DeviceMap", "DeviceUpload");
    assertThat(trips.storageLevel()).as("its cache").isNotEqualTo(StorageLevel.NONE());
    assertThatThrownBy(() -> mapped("unknown")).hasMessageContaining("it's {own} \\ name");
  }
}
