package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.random.XORShiftRandom;
import org.junit.jupiter.api.Test;

class SimplePartitionersTest {
  private static final ColumnarBatch ROWS = new ColumnarBatch(new ColumnVector[0], 10);

  @Test
  void dealsRowsOutAcrossBatchesAsSparkDoes() {
    for (int mapPartition = 0; mapPartition < 20; mapPartition++) {
      RoundRobinBatchPartitioner partitioner = new RoundRobinBatchPartitioner(7, mapPartition);
      int position = new XORShiftRandom(mapPartition).nextInt(7);
      for (int batch = 0; batch < 3; batch++) {
        int[] ids = new int[10];
        partitioner.partitionIds(ROWS, ids);
        for (int id : ids) {
          position++;
          assertThat(id).isEqualTo(position % 7);
        }
      }
    }
  }

  @Test
  void sendsAllToOne() {
    int[] ids = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    new SingleBatchPartitioner().partitionIds(ROWS, ids);
    assertThat(ids).containsOnly(0);
  }
}
