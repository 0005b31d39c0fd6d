package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicator.HostSymmetric;
import io.weft.collectives.symmetric.CollectiveMemoryCache;
import io.weft.collectives.symmetric.SegmentMemory;
import io.weft.collectives.symmetric.SymmetricOptions;
import io.weft.device.Deadline;
import io.weft.device.HostEvent;
import io.weft.logging.CapturedLogs;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Symmetric buffers of ranks on several hosts. */
class PrivateBuffersTest {
  @TempDir Path folder;

  /** Ranks 0 and 1 on one host, rank 2 on another. */
  private RankGang gang() {
    List<CommunicatorFactory> factories =
        IntStream.range(0, 3)
            .mapToObj(
                rank ->
                    HostOptions.defaults()
                        .withFolder(folder.resolve("host-" + rank / 2))
                        .withHostIdentity("host-" + rank / 2))
            .<CommunicatorFactory>map(HostCommunicators::new)
            .toList();
    return RankGang.open(factories, Duration.ofSeconds(60));
  }

  @Test
  void collectivesAndBarriersWorkAndTheReasonIsLoggedOnce() {
    CapturedLogs.clear();
    HostSymmetric.LOGGED.clear();
    try (RankGang gang = gang()) {
      gang.run(
          communicator -> {
            for (int i = 0; i < 3; i++) {
              SymmetricBuffer buffer = communicator.symmetric(DataType.FLOAT32, 5000);
              assertThat(buffer.whyPrivate().orElseThrow()).contains("[[0, 1], [2]]");
              Values.check("zeros", buffer.elements(), index -> 0);
              Values.fill(buffer.elements(), index -> communicator.rank());
              communicator.allReduce(buffer.elements(), ReduceOp.SUM);
              Values.check("sum", buffer.elements(), index -> 3);
              if (communicator.rank() != 1) {
                buffer.barrier(2, 0);
              }
              buffer.barrier();
              buffer.close();
              assertThatThrownBy(() -> communicator.allReduce(buffer.elements(), ReduceOp.SUM))
                  .hasMessageContaining("the buffer is closed");
            }
          });
    }
    assertThat(CapturedLogs.lines())
        .filteredOn(line -> line.contains("private memory instead of symmetric buffers"))
        .hasSize(1);
  }

  @Test
  void differentRequestsAreNamed() {
    try (RankGang gang = gang()) {
      gang.run(
          communicator -> {
            int count = communicator.rank() == 2 ? 7 : 8;
            assertThatThrownBy(() -> communicator.symmetric(DataType.INT16, count))
                .isInstanceOf(CollectiveException.class)
                .hasMessageContaining("rank 2 for another than rank 0");
            SymmetricBuffer empty = communicator.symmetric(DataType.INT16, 0);
            assertThat(empty.elements().count()).isZero();
            assertThatThrownBy(() -> empty.signal(0, 0, 1))
                .hasMessageContaining("no signal on rank " + communicator.rank());
          });
    }
  }

  @Test
  void aCountAboveTheLimitOrBelowZeroIsAnErrorOnAllRanks() {
    try (RankGang gang = gang()) {
      gang.run(
          communicator -> {
            for (long count : new long[] {1L << 31, -1}) {
              CollectiveException refused =
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> communicator.symmetric(DataType.INT8, count));
              assertThat(refused.kind()).isEqualTo(Kind.INVALID);
              assertThat(refused).hasMessageContaining("0 to 2147483647 are allowed");
            }
            communicator.barrier();
          });
    }
  }

  /** The collector is not needed. */
  @Test
  void memoryIsFreedAfterCloseAndTheLastUse() {
    int bytes = 48 << 20;
    try (RankGang gang = gang()) {
      List<SymmetricBuffer> buffers =
          gang.ask(communicator -> communicator.symmetric(DataType.INT8, bytes));
      HostEvent use = new HostEvent("a use");
      buffers.get(0).elements().owner().usedUntil(use);
      long all = directBytes();
      buffers.forEach(SymmetricBuffer::close);
      buffers.forEach(SymmetricBuffer::close);
      assertThat(all - directBytes()).isGreaterThanOrEqualTo(2L * bytes).isLessThan(3L * bytes);
      use.complete();
      assertThat(all - directBytes()).isGreaterThanOrEqualTo(3L * bytes);
    }
  }

  private static long directBytes() {
    return ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
        .filter(pool -> pool.getName().equals("direct"))
        .mapToLong(BufferPoolMXBean::getMemoryUsed)
        .sum();
  }

  private RankGang oneHost(SegmentMemory last) {
    List<CommunicatorFactory> factories =
        Stream.of(SegmentMemory.in(folder.resolve("memory")), last)
            .map(
                memory ->
                    HostOptions.defaults()
                        .withFolder(folder.resolve("host"))
                        .withSymmetric(
                            SymmetricOptions.cached(memory, new CollectiveMemoryCache())))
            .<CommunicatorFactory>map(HostCommunicators::new)
            .toList();
    return RankGang.open(factories, Duration.ofSeconds(60));
  }

  /** Only a lack of room is a reason for private memory. */
  @Test
  void otherFailuresOfOneRankReachAllRanks() {
    SegmentMemory broken =
        (id, rank, bytes) -> {
          throw new IllegalStateException("the arena is closed");
        };
    try (RankGang gang = oneHost(broken)) {
      gang.run(
          communicator ->
              assertThatThrownBy(() -> communicator.symmetric(DataType.INT8, 10))
                  .isInstanceOf(CollectiveException.class)
                  .hasMessageContaining("the arena is closed"));
    }
    SegmentMemory full =
        (id, rank, bytes) -> {
          throw new IOException("no room here");
        };
    try (RankGang gang = oneHost(full)) {
      gang.run(
          communicator ->
              assertThat(communicator.symmetric(DataType.INT8, 10).whyPrivate())
                  .hasValue("rank 1: no room here"));
    }
  }

  @Test
  void aRoundThatBeginsAfterItsDeadlineEndsOnAllRanks() {
    try (RankGang gang = gang()) {
      gang.run(
          communicator -> {
            boolean late = communicator.rank() == 2;
            Deadline deadline =
                late ? Deadline.afterNanos(0) : Deadline.after(communicator.timeout());
            assertThatThrownBy(
                    () ->
                        new CommunicatorBootstrap(communicator)
                            .exchange("names", new byte[3], deadline))
                .isInstanceOf(CollectiveException.class)
                .hasMessageContaining("rank 2 came to round names after");
          });
    }
  }
}
