package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.spark_partition_id;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.NcclLibrary;
import io.weft.device.UnavailableLibraryException;
import io.weft.memory.Memory;
import io.weft.spark.WeftPlugin;
import io.weft.spark.collectives.WeftCollectives;
import io.weft.testgpus.TestMachine;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Rows from GPU to GPU between two executors, each in its own process. Run by {@code
 * tests/gpu/run}, which puts Spark's jars into SPARK_HOME; the build has {@code GpuApplicationTest}
 * instead.
 */
class TwoExecutors {
  private static final int ROWS = 20_000;
  private static final int MAPS = 16;
  private static final int PARTITIONS = 6;

  private static final String SHARING_SWITCH = "NCCL_MULTI_RANK_GPU_ENABLE";

  private SparkSession session;

  private void start() {
    SparkSession.Builder builder =
        SparkSession.builder()
            .master("local-cluster[2,1,1024]")
            .appName("weft-two-executors")
            .config("spark.plugins", WeftPlugin.class.getName())
            .config("spark.executor.extraClassPath", System.getProperty("surefire.test.class.path"))
            .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
            .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            // Tests of failures must not fall back to Spark's shuffle.
            .config("spark.weft.fallback.failures", "0")
            // With Spark's checksums of rows, exchanges stay on the host.
            .config("spark.sql.shuffle.orderIndependentChecksum.enabled", "false")
            .config("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false")
            .config("spark.executorEnv." + SHARING_SWITCH, "1")
            .config("spark.weft.gpu.exchangeMemory", "64m");
    if (!TestMachine.isReal()) {
      builder.config("spark.executorEnv.LD_LIBRARY_PATH", TestMachine.doubles().toString());
    }
    session = builder.getOrCreate();
  }

  @AfterEach
  void stop() {
    if (session != null) {
      session.stop();
    }
  }

  private Dataset<Row> rows() {
    return session
        .range(0, ROWS, 1, MAPS)
        .selectExpr(
            "id",
            "if(id % 13 = 0, null, cast(id * 7919 % 211 as int)) k",
            "if(id % 11 = 0, null, repeat(concat('x', id % 97), cast(id % 5 as int))) s",
            "if(id % 3 = 0, null, cast(id as decimal(30,6)) * -1000003) big",
            "if(id % 23 = 0, null, id % 3 = 0) b",
            "id * 0.5 x");
  }

  /**
   * Compares rows and partitions with Spark's own shuffle, and prints the path. Both executors have
   * the first GPU, where CUDA IPC is used even if NCCL takes both.
   */
  @Test
  void rowsGoBetweenTheirGpus() throws IOException {
    TestMachine.assume(1);
    start();
    session.conf().set("spark.weft.enabled", "false");
    List<String> expected = RowTexts.unordered(exchanged(rows()));
    session.conf().set("spark.weft.enabled", "true");
    Dataset<Row> ours = exchanged(WeftGpu.onDevice(rows()));
    assertThat(RowTexts.unordered(ours)).isEqualTo(expected);
    List<WeftShuffleExchangeExec> exchanges = Plans.wefts(ours);
    assertThat(exchanges).hasSize(1);
    assertThat(exchanges.get(0).simpleString(1000)).contains("blocks on GPUs");
    assertThat(exchanges.get(0).metrics().apply(ExchangeMetrics.DEVICE_TABLES_READ).value())
        .isPositive();
    List<String> paths = logged(" go by ");
    paths.forEach(System.out::println);
    assertThat(paths)
        .as("the path between the GPUs, in the executors' logs")
        .isNotEmpty()
        .allSatisfy(path -> assertThat(path).contains("go by ipc"));
  }

  /** One task in each executor; both are ranks of NCCL on the first GPU. */
  @Test
  void tasksOfABarrierStageAreRanksOnTheirGpus() {
    TestMachine.assume(1);
    assumeTrue(isShared(), "NCCL does not let two executors share a GPU");
    start();
    RDD<Integer> tasks =
        new JavaSparkContext(session.sparkContext()).parallelize(List.of(0, 1), 2).rdd();
    RankFunction function =
        ignored -> CollectionConverters.asScala(List.of(summedByRanks()).iterator());
    ClassTag<String> tag = ClassTag$.MODULE$.apply(String.class);
    for (int stage = 0; stage < 2; stage++) {
      List<String> answers =
          new JavaRDD<>(tasks.barrier().mapPartitions(function, false, tag), tag).collect();
      answers.forEach(System.out::println);
      assertThat(answers).hasSize(2).allSatisfy(each -> assertThat(each).startsWith("3 12 "));
    }
  }

  private interface RankFunction
      extends Function1<Iterator<Integer>, Iterator<String>>, Serializable {}

  /** A sum, and its recording replayed twice; then how NCCL and the GPU run them. */
  private static String summedByRanks() {
    GpuCommunicator ranks = WeftCollectives.onGpu(BarrierTaskContext.get());
    GpuBuffer sum = ranks.onDevice(DataType.INT64, 1);
    TypedBuffer host = TypedBuffer.wrap(ByteBuffer.allocateDirect(Long.BYTES), DataType.INT64);
    Memory.putLong(host.address(), ranks.rank() + 1);
    sum.write(host, 0);
    ranks.allReduce(sum.elements(), ReduceOp.SUM);
    sum.read(host, 0);
    long summed = Memory.getLong(host.address());
    try (Recording recording = ranks.record(to -> to.allReduce(sum.elements(), ReduceOp.SUM))) {
      recording.replay();
      recording.replay();
      sum.read(host, 0);
      return "%d %d rank %d, no window: %s, no graph: %s"
          .formatted(
              summed,
              Memory.getLong(host.address()),
              ranks.rank(),
              sum.whyNoWindow().orElse("-"),
              recording.whyNoGraph().orElse("-"));
    }
  }

  private static boolean isShared() {
    try {
      return NcclLibrary.load(TestMachine.options()).sharesGpus(Map.of(SHARING_SWITCH, "1"));
    } catch (UnavailableLibraryException e) {
      return false;
    }
  }

  private static Dataset<Row> exchanged(Dataset<Row> from) {
    return from.repartition(PARTITIONS, col("k"), col("s"))
        .withColumn("partition", spark_partition_id());
  }

  /** The lines of the executors' logs that contain a text. */
  private List<String> logged(String text) throws IOException {
    Path folder =
        Path.of(System.getenv("SPARK_HOME"), "work", session.sparkContext().applicationId());
    List<String> found = new ArrayList<>();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path log : files.filter(file -> file.endsWith("stderr")).toList()) {
        found.addAll(Files.readAllLines(log).stream().filter(line -> line.contains(text)).toList());
      }
    }
    return found;
  }
}
