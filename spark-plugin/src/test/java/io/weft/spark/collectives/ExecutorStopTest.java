package io.weft.spark.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.SymmetricBuffer;
import io.weft.memory.Memory;
import io.weft.spark.LocalSpark;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** The stop of Weft's executor side while tasks run. */
class ExecutorStopTest {
  private static final AtomicReference<ExecutorCollectives> STOPPED = new AtomicReference<>();

  /** Trap: the memory is unmapped while the task writes to it, which ends the JVM. */
  @Test
  void aRunningTaskKeepsItsSymmetricMemory() {
    try (LocalSpark spark = LocalSpark.start(Map.of("spark.master", "local[2,1]"))) {
      List<String> answers =
          BarrierJobs.run(
              spark.session().sparkContext(),
              2,
              task -> {
                Communicator communicator = WeftCollectives.communicator(task);
                SymmetricBuffer buffer = communicator.symmetric(DataType.INT64, 1000);
                assertThat(buffer.whyPrivate()).isEmpty();
                task.barrier();
                if (task.partitionId() == 0) {
                  STOPPED.set(ExecutorCollectives.running().orElseThrow());
                  STOPPED.get().close();
                }
                task.barrier();
                long address = buffer.elements().owner().address() + buffer.elements().offset();
                Memory.putLong(address, 47);
                assertThatThrownBy(communicator::barrier).hasMessageContaining("Weft stops");
                return Memory.getLong(address) + "";
              });
      assertThat(answers).containsExactly("47", "47");
      Awaitility.await("the memory is freed at the end of the tasks")
          .atMost(Duration.ofSeconds(60))
          .untilAsserted(
              () -> {
                CollectiveStatistics now = STOPPED.get().statistics();
                assertThat(now.open()).isZero();
                assertThat(now.memory().usedBytes() + now.memory().idleBytes()).isZero();
              });
    }
  }
}
