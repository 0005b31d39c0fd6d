package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.LocalSpark;
import io.weft.spark.Tensors;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Feeds with Kryo as {@code spark.serializer}, which RDDs of tensors require. */
class FeedWithKryoTest {
  private static LocalSpark spark;

  /** A record, which Kryo cannot read. */
  private record Sum(int rank, long of) implements Serializable {}

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Tensors.SETTINGS);
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @Test
  void resultsOfRanksMayBeRecords() {
    assertThat(
            WeftFeed.shards(FeedData.rows(spark.session(), 100, 3), 2)
                .batchRows(10)
                .train(
                    task -> {
                      long sum = 0;
                      for (var batch : FeedData.epoch(task, 0)) {
                        sum += batch.stream().mapToLong(Long::longValue).sum();
                      }
                      return new Sum(task.rank(), sum);
                    }))
        .extracting(Sum::rank)
        .containsExactly(0, 1);
  }

  @Test
  void shardsAreExported() {
    try (FeedExport export =
        WeftFeed.shards(FeedData.rows(spark.session(), 100, 3), 2).batchRows(10).export()) {
      assertThat(export.shards()).hasSize(2).allMatch(shard -> Files.exists(Path.of(shard.file())));
      assertThat(export.shards().stream().mapToLong(FeedExport.Shard::rows).sum()).isEqualTo(100);
    }
  }
}
