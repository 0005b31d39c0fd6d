package io.weft.spark.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Each loss is handled, also when the handler of an earlier loss fails or blocks. */
class ExecutorLossMonitorTest {
  private final ExecutorLosses losses = new ExecutorLosses();
  private final Queue<String> received = new ConcurrentLinkedQueue<>();

  private void lose(int... executors) {
    IntStream.of(executors)
        .forEach(
            executor ->
                assertThat(losses.add(Integer.toString(executor), "lost by the test")).isTrue());
  }

  /** A driver that fails every second poll. */
  private ExecutorLossMonitor.Source driver() {
    AtomicInteger polls = new AtomicInteger();
    return known -> {
      if (polls.incrementAndGet() % 2 == 0) {
        throw new IllegalStateException("the driver is busy");
      }
      return losses.since(known);
    };
  }

  private void awaitLosses(String... executors) {
    Awaitility.await("the losses of all executors")
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(received).containsExactlyInAnyOrder(executors));
  }

  @Test
  void aFailingHandlerHidesNoOtherLoss() {
    lose(1, 2, 3);
    try (ExecutorLossMonitor monitor =
        new ExecutorLossMonitor(
            driver(),
            5,
            loss -> {
              received.add(loss.executorId());
              if (loss.executorId().equals("1")) {
                throw new IllegalStateException("failed by the test");
              }
            })) {
      monitor.begin();
      monitor.begin();
      awaitLosses("1", "2", "3");
      lose(4);
      awaitLosses("1", "2", "3", "4");
    }
  }

  /** A monitor that has missed many losses gets the last ones, each of them once. */
  @Test
  void onlyTheLastLossesAreKept() {
    int all = ExecutorLosses.MAX + 500;
    lose(IntStream.rangeClosed(1, all).toArray());
    assertThat(losses.reason("500")).isEmpty();
    assertThat(losses.reason("501")).hasValue("executor 501 was lost: lost by the test");
    String[] last =
        IntStream.rangeClosed(501, all).mapToObj(Integer::toString).toArray(String[]::new);
    try (ExecutorLossMonitor monitor =
        new ExecutorLossMonitor(driver(), 5, loss -> received.add(loss.executorId()))) {
      monitor.begin();
      awaitLosses(last);
      lose(9999);
      String[] more = Arrays.copyOf(last, last.length + 1);
      more[last.length] = "9999";
      awaitLosses(more);
    }
  }

  @Test
  void aBlockingHandlerDelaysNoOtherLoss() throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    try (ExecutorLossMonitor monitor =
        new ExecutorLossMonitor(
            driver(),
            5,
            loss -> {
              received.add(loss.executorId());
              try {
                // Blocks until the monitor interrupts this thread.
                assertThat(ended.await(1, TimeUnit.HOURS)).isTrue();
              } catch (InterruptedException e) {
                ended.countDown();
              }
            })) {
      monitor.begin();
      lose(1, 2);
      awaitLosses("1", "2");
      lose(3);
      awaitLosses("1", "2", "3");
    }
    assertThat(ended.await(60, TimeUnit.SECONDS)).as("interrupted at the end").isTrue();
  }
}
