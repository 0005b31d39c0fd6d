package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.config.Activation;
import io.weft.spark.driver.DriverState.ExecutorEndListener;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.junit.jupiter.api.Test;

class FailedStartMonitorTest {
  private final CountDownLatch stopped = new CountDownLatch(1);
  private final AtomicInteger stops = new AtomicInteger();
  private final SparkConf conf = new SparkConf(false).set("spark.deploy.maxExecutorRetries", "3");
  private final DriverState state = new DriverState(new Activation(Optional.empty()), conf);

  @Test
  void stopsTheApplicationOnceAfterTheMaximumOfFailedExecutorsInARow() throws InterruptedException {
    FailedStartMonitor listener = listener();
    remove(listener, "1", "1", "2", "2");
    assertThat(stops).hasValue(0);
    remove(listener, "3");
    assertThat(stopped.await(30, TimeUnit.SECONDS)).isTrue();
    remove(listener, "4", "5");
    assertThat(stops).hasValue(1);
  }

  @Test
  void nothingIsStoppedWhileAnotherExecutorIsAlive() throws InterruptedException {
    FailedStartMonitor listener = listener();
    remove(listener, "1", "2");
    state.announced(new PeerAddress("3", "i", "host", 1, "/folder", "token", "boot", "0.1.0"));
    remove(listener, "4", "5", "6", "7");
    assertThat(stops).hasValue(0);
    remove(listener, "3", "3", "8", "9");
    assertThat(stops).hasValue(0);
    remove(listener, "10");
    assertThat(stopped.await(30, TimeUnit.SECONDS)).isTrue();
  }

  /** Days can pass between two failures. */
  @Test
  void failuresBeforeAnExecutorThatStartedDoNotCount() throws InterruptedException {
    FailedStartMonitor listener = listener();
    remove(listener, "1", "2");
    state.announced(new PeerAddress("3", "i", "host", 1, "/folder", "token", "boot", "0.1.0"));
    remove(listener, "3", "4", "5");
    assertThat(stops).hasValue(0);
    remove(listener, "6");
    assertThat(stopped.await(30, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void aNegativeNumberMeansUnlimited() {
    conf.set("spark.deploy.maxExecutorRetries", "-1");
    FailedStartMonitor listener = listener();
    for (int i = 0; i < 50; i++) {
      remove(listener, Integer.toString(i));
    }
    assertThat(stops).hasValue(0);
  }

  @Test
  void executorsThatTheDriverRemovesDoNotCount() {
    FailedStartMonitor listener = listener();
    for (int i = 0; i < 50; i++) {
      listener.onExecutorRemoved(
          new SparkListenerExecutorRemoved(0, Integer.toString(i), "Executor killed by driver."));
    }
    assertThat(stops).hasValue(0);
  }

  private FailedStartMonitor listener() {
    return new FailedStartMonitor(
        state,
        conf,
        () -> {
          stops.incrementAndGet();
          stopped.countDown();
        });
  }

  private void remove(FailedStartMonitor listener, String... executors) {
    for (String executor : executors) {
      var removed = new SparkListenerExecutorRemoved(0, executor, "gone");
      listener.onExecutorRemoved(removed);
      new ExecutorEndListener(state).onExecutorRemoved(removed);
    }
  }
}
