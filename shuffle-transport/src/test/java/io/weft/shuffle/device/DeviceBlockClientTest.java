package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.store.BlockKey;
import io.weft.transfers.DeviceId;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Groups that are given up while other executors do not answer. */
class DeviceBlockClientTest {
  private static final int EXECUTORS = 4;
  private static final List<DeviceBlock> BLOCKS =
      List.of(new DeviceBlock(new BlockKey(1, 2), 3, 100));

  @Test
  void theMemoryOfAllGroupsAheadIsAwaitedForAsLongAsThatOfOne() throws InterruptedException {
    CountDownLatch requested = new CountDownLatch(EXECUTORS);
    CountDownLatch end = new CountDownLatch(1);
    try (DeviceBlockClient client =
        new DeviceBlockClient(
            new DeviceCatalog(),
            (executor, request) -> {
              requested.countDown();
              end.await();
              throw new IOException("executor " + executor + " has ended");
            },
            null,
            new DeviceId("own", 1),
            Duration.ofSeconds(60))) {
      for (int executor = 0; executor < EXECUTORS; executor++) {
        assertThat(client.start("" + executor, BLOCKS, true).bytes()).isZero();
      }
      // A group whose request has not begun is dropped at once.
      assertThat(requested.await(1, TimeUnit.MINUTES)).isTrue();
      long start = System.nanoTime();
      assertThat(client.makeRoom(() -> {})).isTrue();
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isGreaterThanOrEqualTo(BlockFetches.FREE_TIMEOUT)
          .isLessThan(BlockFetches.FREE_TIMEOUT.multipliedBy(2));
      end.countDown();
    }
  }
}
