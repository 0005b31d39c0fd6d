package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Executors in separate processes; one is killed while it serves. */
class RapidsProcessesTest {
  private static final Duration DEADLINE = Duration.ofSeconds(60);
  private static final List<Integer> ALL =
      IntStream.range(0, ServingProcess.TABLES).boxed().toList();

  @TempDir Path folder;

  @BeforeAll
  static void needsDoubles() {
    Doubles.assume();
  }

  @ParameterizedTest
  @EnumSource(RapidsGpuPath.class)
  void tablesComeUntilTheServerIsKilled(RapidsGpuPath way) throws Exception {
    try (ServingProcess server = new ServingProcess(folder, way);
        TestExecutor reader =
            new TestExecutor(folder, 0, way, Map.of(), DEADLINE, Duration.ofMinutes(5))) {
      RapidsShuffleClient client = reader.client(server.id());
      FetchTask whole = new FetchTask();
      client.fetch(ALL, whole);
      Map<Integer, byte[]> arrived = whole.await();
      assertThat(arrived).hasSize(ServingProcess.TABLES);
      arrived.forEach(
          (id, content) ->
              assertThat(content).isEqualTo(TestExecutor.content(id, ServingProcess.size(id))));
      CountDownLatch some = new CountDownLatch(10);
      FetchTask broken = new FetchTask(some::countDown);
      client.fetch(ALL, broken);
      assertThat(some.await(60, TimeUnit.SECONDS)).isTrue();
      long start = System.nanoTime();
      server.kill();
      assertThat(broken.awaitError()).contains("1");
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(DEADLINE);
      Awaitility.await().atMost(DEADLINE).until(() -> reader.transport().inflightBytes() == 0);
    }
    Doubles.assertClean();
  }
}
