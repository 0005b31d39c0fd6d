package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.LocalSpark;
import io.weft.spark.runtime.WeftExecutor;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import org.apache.spark.TaskContext$;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Chunks of a map task with little private memory, shared with other tasks, and no shared memory.
 */
class CrowdedChunksTest {
  private static final int MEGABYTE = 1 << 20;
  private static final int PRIVATE_MEGABYTES = 4;
  private static final int WORKING_MEGABYTES = PRIVATE_MEGABYTES / 2;
  private static final int PARTITIONS = 100;
  private static final int RECORD = 50;
  private static final int RECORDS = 400 * PARTITIONS;
  private static final long MAX_CHUNK = MEGABYTE / 16;

  private static LocalSpark spark;

  /** The output of another task, which uses all shared memory. */
  private MapOutputWriter sibling;

  private MapOutputWriter output;

  @BeforeAll
  static void start() {
    spark =
        LocalSpark.start(
            Map.of(
                "spark.io.encryption.enabled", "true",
                "spark.weft.memory.size", Integer.toString(MEGABYTE),
                "spark.weft.memory.segmentSize", Integer.toString(MEGABYTE),
                "spark.weft.spill.privateMemory", Integer.toString(PRIVATE_MEGABYTES * MEGABYTE)));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @BeforeEach
  void fillSharedMemory() throws IOException {
    sibling = WeftExecutor.exchange().newMapOutput(new BlockKey(1, 0), 1);
    assertThat(sibling.allocate(MEGABYTE).kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
    output = WeftExecutor.exchange().newMapOutput(new BlockKey(1, 1), PARTITIONS);
  }

  @AfterEach
  void free() {
    output.close();
    sibling.close();
    assertThat(LocalSpark.statistics().arena().extents()).isZero();
  }

  /** Writes records to each partition in turn and returns the number of chunks. */
  private long write(long[] lastBytes) throws IOException {
    long before = LocalSpark.statistics().arena().extents();
    PartitionChunks chunks =
        new PartitionChunks(
            output,
            TaskContext$.MODULE$.empty(),
            PARTITIONS,
            lastBytes,
            MAX_CHUNK,
            (partition, address, end, records) -> {});
    for (int record = 0; record < RECORDS; record++) {
      int partition = record % PARTITIONS;
      chunks.wrote(partition, chunks.room(partition, RECORD) + RECORD);
    }
    chunks.finish();
    long[] bytes = new long[PARTITIONS];
    Arrays.fill(bytes, (long) RECORDS / PARTITIONS * RECORD);
    assertThat(output.partitionBytes()).containsExactly(bytes);
    return LocalSpark.statistics().arena().extents() - before;
  }

  @Test
  void aChunkHasManyRecordsIfTheFirstChunksWereTooLong() throws IOException {
    long[] lastBytes = new long[PARTITIONS];
    Arrays.fill(lastBytes, MAX_CHUNK);
    assertThat(write(lastBytes)).isBetween((long) PARTITIONS, RECORDS / 3L);
  }

  /** The rest is less than a task's share, so the task is not crowded when memory is full. */
  @Test
  void theTaskCommitsItsChunksIfASiblingHasNearlyAllMemory() throws IOException {
    for (int i = 1; i < WORKING_MEGABYTES; i++) {
      assertThat(sibling.allocate(MEGABYTE).kind()).isEqualTo(MemoryKind.PRIVATE);
    }
    Extent most = sibling.allocate(MEGABYTE - MAX_CHUNK / 4);
    assertThat(most.kind()).isEqualTo(MemoryKind.PRIVATE);
    assertThat(write(null)).isBetween((long) PARTITIONS, (long) RECORDS);
  }
}
