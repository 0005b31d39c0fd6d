package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** {@code spark.weft.enabled} is changed in the middle of a session, while queries run. */
class SwitchedOffAtWorkTest {
  private static final int THREADS = 4;
  private static final Duration LIMIT = Duration.ofMinutes(4);

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE).cores(2).set("spark.scheduler.mode", "FAIR");

  @Test
  void queriesThatRunMeanwhileGiveTheSameRows() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    try {
      List<CompletableFuture<Void>> running = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        running.add(
            CompletableFuture.runAsync(() -> Queries.compact().forEach(CLUSTER::check), threads));
      }
      CompletableFuture<Void> all =
          CompletableFuture.allOf(running.toArray(new CompletableFuture<?>[0]));
      int switches = switchUntil(all);
      all.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
      assertThat(switches).as("switches while queries ran").isGreaterThan(2);
    } finally {
      threads.shutdownNow();
      CLUSTER.session().conf().set("spark.weft.enabled", "true");
    }
    assertThat(CLUSTER.sum("outputsPublished")).as("map outputs of Weft").isPositive();
    CLUSTER.awaitNothingUsed();
  }

  /** Switches after each query of its own, so that both states last for some queries. */
  private static int switchUntil(CompletableFuture<Void> end) {
    int switches = 0;
    while (!end.isDone()) {
      CLUSTER.session().conf().set("spark.weft.enabled", Boolean.toString(switches % 2 != 0));
      CLUSTER.check(Queries.compact().get(switches % Queries.compact().size()));
      switches++;
    }
    return switches;
  }
}
