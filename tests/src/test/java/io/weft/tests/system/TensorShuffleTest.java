package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tensor.Tensor;
import io.weft.tests.application.TensorJob;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.util.List;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.storage.StorageLevel;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import scala.Tuple2;

/** RDDs of tensors between executors, with the jar that users get: plain and encoded. */
class TensorShuffleTest {
  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
          .set("spark.kryo.registrator", "io.weft.spark.WeftKryoRegistrator")
          .set("spark.weft.tensors.codec", "bfloat16");

  @Test
  void tensorsArriveInOtherExecutorsAndInTheDriver() {
    long before = CLUSTER.sum("outputsPublished");
    JavaPairRDD<Integer, Tensor> shuffled = TensorJob.shuffled(CLUSTER.context());
    assertThat(TensorJob.checks(shuffled)).isEqualTo(TensorJob.expected());
    assertThat(CLUSTER.sum("outputsPublished") - before).isEqualTo(8);
    List<Tuple2<Integer, Tensor>> collected = shuffled.collect();
    assertThat(collected.stream().map(one -> TensorJob.check(one._1(), one._2())).sorted().toList())
        .isEqualTo(TensorJob.expected());
  }

  /** Cached tensors are copies: the memory of the shuffle is freed. */
  @Test
  void cachedTensorsOutliveTheirShuffle() {
    JavaPairRDD<Integer, Tensor> cached =
        TensorJob.shuffled(CLUSTER.context()).persist(StorageLevel.MEMORY_ONLY());
    assertThat(cached.count()).isEqualTo(TensorJob.COUNT);
    CLUSTER.context().cleaner().get().doCleanupShuffle(shuffleOf(cached), true);
    assertThat(TensorJob.checks(TensorJob.shuffled(CLUSTER.context())))
        .isEqualTo(TensorJob.expected());
    assertThat(TensorJob.checks(cached)).isEqualTo(TensorJob.expected());
    cached.unpersist(true);
  }

  private static int shuffleOf(JavaPairRDD<Integer, Tensor> rdd) {
    return ((ShuffleDependency<?, ?, ?>) rdd.rdd().dependencies().head()).shuffleId();
  }
}
