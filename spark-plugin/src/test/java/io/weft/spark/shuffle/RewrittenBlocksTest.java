package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.LocalSpark;
import java.io.File;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;
import java.util.Map;
import org.apache.spark.HashPartitioner;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockId;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Failures while blocks are rewritten for Spark's fetch iterator. */
class RewrittenBlocksTest {
  private static volatile boolean full;

  @Test
  void aBlockThatDoesNotFitTheDiskLeavesNoFile() {
    Map<String, String> settings =
        Map.of(
            "spark.weft.rdd.streams",
            "true",
            "spark.io.compression.codec",
            LastBytesCodec.class.getName());
    try (LocalSpark spark = LocalSpark.start(settings)) {
      BlockId block = writtenBlock(new JavaSparkContext(spark.session().sparkContext()));
      full = true;
      assertThatThrownBy(
              () ->
                  SparkEnv.get()
                      .shuffleManager()
                      .shuffleBlockResolver()
                      .getBlockData(block, Option.empty()))
          .isInstanceOf(IOException.class)
          .hasMessage("the disk is full");
      assertThat(
              CollectionConverters.asJava(
                  SparkEnv.get().blockManager().diskBlockManager().getAllFiles()))
          .extracting(File::getName)
          .noneMatch(name -> name.startsWith("temp_local_"));
    } finally {
      full = false;
    }
  }

  /** A block of Weft with three records. */
  private static BlockId writtenBlock(JavaSparkContext context) {
    JavaPairRDD<Integer, Integer> shuffled =
        context
            .parallelize(List.of(1, 2, 3), 1)
            .mapToPair(i -> new Tuple2<>(i, i))
            .partitionBy(new HashPartitioner(1));
    assertThat(shuffled.count()).isEqualTo(3);
    int shuffleId = ((ShuffleDependency<?, ?, ?>) shuffled.rdd().dependencies().head()).shuffleId();
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    long mapId = tracker.shuffleStatuses().apply(shuffleId).mapStatuses()[0].mapId();
    return new ShuffleBlockId(shuffleId, mapId, 0);
  }

  /** Compresses nothing. Its streams cannot write their last bytes to a full disk. */
  public static final class LastBytesCodec implements CompressionCodec {
    /** Called by Spark. */
    public LastBytesCodec(SparkConf unused) {}

    @Override
    public OutputStream compressedOutputStream(OutputStream out) {
      return new FilterOutputStream(out) {
        @Override
        public void close() throws IOException {
          super.close();
          if (full) {
            throw new IOException("the disk is full");
          }
        }
      };
    }

    @Override
    public InputStream compressedInputStream(InputStream in) {
      return in;
    }
  }
}
