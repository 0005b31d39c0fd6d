package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.LocalSpark;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Tuple2;

/** Streams with encrypted disks and little memory, whose open chunks are committed early. */
class EncryptedStreamsTest extends StreamsContract {
  private static final int COUNT = 30_000;

  EncryptedStreamsTest() {
    super(
        Map.of(
            "spark.io.encryption.enabled", "true",
            "spark.weft.memory.size", Integer.toString(1 << 20),
            "spark.weft.spill.privateMemory", Integer.toString(4 << 20)));
  }

  @ParameterizedTest
  @ValueSource(ints = {7, 190, 900})
  void spilledRecordsAreThoseOfSparksShuffle(int partitions) {
    List<String> expected =
        spark().withSortShuffle(session -> byPartition(shuffled(session, partitions)));
    long spilled = LocalSpark.count(ExchangeCounter.BYTES_SPILLED);
    assertThat(byPartition(shuffled(spark().session(), partitions))).isEqualTo(expected);
    assertThat(LocalSpark.count(ExchangeCounter.BYTES_SPILLED)).isGreaterThan(spilled);
  }

  /** Long texts by number. */
  private static JavaRDD<String> shuffled(SparkSession session, int partitions) {
    return pairs(session, COUNT)
        .mapToPair(e -> new Tuple2<>(e._2(), ("text " + e._2()).repeat(20)))
        .partitionBy(hash(partitions))
        .map(e -> e._1() + " " + e._2().hashCode());
  }
}
