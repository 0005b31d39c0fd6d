package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllReduce;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Topology;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Event;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SymmetricArenaTest {
  @TempDir Path folder;

  private SymmetricOptions options() {
    return SymmetricOptions.in(folder.resolve("symmetric")).withSegmentBytes(1 << 20);
  }

  private SymmetricArena arena(Communicator communicator) {
    return SymmetricArena.open(communicator, options());
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "host"})
  void windowsHaveEqualOffsetsOnAllRanks(String implementation) {
    try (RankGang gang = Gangs.named(implementation, folder.resolve("host"), 3)) {
      List<List<String>> places =
          gang.ask(
              communicator -> {
                try (SymmetricArena arena = arena(communicator)) {
                  return Stream.of(100L, 0L, 5_000_000L, 64L)
                      .map(bytes -> arena.window(bytes).place())
                      .toList();
                }
              });
      assertThat(places.get(1)).isEqualTo(places.get(0)).doesNotHaveDuplicates();
      assertThat(places.get(2)).isEqualTo(places.get(0));
    }
  }

  @Test
  void collectivesOnWindowsRunInPlace() {
    try (RankGang gang = Gangs.host(folder.resolve("host"), 3)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena = arena(communicator);
                Window window = arena.window(400_000)) {
              TypedBuffer data = window.buffer(DataType.FLOAT32);
              Values.fill(data, communicator.rank());
              communicator.allReduce(data, ReduceOp.SUM);
              Values.check(
                  "in place",
                  data,
                  index -> Values.reduced(DataType.FLOAT32, ReduceOp.SUM, 3, index));
              assertThat(communicator.metrics().total(Algorithm.IN_PLACE).calls()).isEqualTo(1);
              communicator.barrier();
            }
          });
    }
  }

  @Test
  void ranksApartAreRefusedWithTheReason() {
    Topology apart = new Topology(List.of(List.of(0, 1), List.of(2)));
    Communicator communicator =
        (Communicator)
            Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {Communicator.class},
                (proxy, method, arguments) -> method.getName().equals("topology") ? apart : null);
    assertThatThrownBy(() -> SymmetricArena.open(communicator, options()))
        .isInstanceOfSatisfying(
            CollectiveException.class,
            failure -> assertThat(failure.kind()).isEqualTo(Kind.INVALID))
        .hasMessageContaining("map each other's memory")
        .hasMessageContaining("[[0, 1], [2]]");
    assertThat(SymmetricArena.refusal(new Topology(List.of(List.of(0, 1, 2))))).isEmpty();
  }

  @Test
  void ranksOfTwoHostsAreRefusedAndGoOnWithCollectives() {
    List<CommunicatorFactory> factories = new ArrayList<>();
    for (String host : List.of("one", "one", "two")) {
      HostOptions options = HostOptions.defaults().withFolder(folder.resolve("host"));
      factories.add(new HostCommunicators(options.withHostIdentity(host)));
    }
    try (RankGang gang = RankGang.open(factories, Duration.ofSeconds(60))) {
      gang.run(
          communicator -> {
            CollectiveException refused = failure(() -> arena(communicator).close());
            assertThat(refused.kind()).isEqualTo(Kind.INVALID);
            assertThat(refused).hasMessageContaining("[[0, 1], [2]]");
            communicator.barrier();
          });
    }
  }

  /** Trap: one rank allocates once more, and offsets then mean different places. */
  @Test
  void extraAllocationOnOneRankIsDetected() {
    try (RankGang gang = Gangs.local(3)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator -> {
                try (SymmetricArena arena = arena(communicator);
                    Window first = arena.window(100)) {
                  if (communicator.rank() == 2) {
                    long unused = first.segment().ledger().take(128);
                  }
                  return failure(() -> arena.window(100));
                }
              });
      assertThat(failures)
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
                assertThat(failure.ranks()).containsExactly(2);
                assertThat(failure).hasMessageContaining("allocated what others have not");
              });
    }
  }

  private static CollectiveException failure(Runnable action) {
    return catchThrowableOfType(CollectiveException.class, action::run);
  }

  @Test
  void differentRequestsAreNamedAndTheArenaGoesOn() {
    try (RankGang gang = Gangs.local(3)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena = arena(communicator)) {
              CollectiveException failure =
                  failure(() -> arena.window(communicator.rank() == 1 ? 200 : 100));
              assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
              assertThat(failure.ranks()).containsExactly(0, 1);
              assertThat(failure).hasMessageContaining("100 bytes").hasMessageContaining("200");
              try (Window window = arena.window(100)) {
                assertThat(window.bytes()).isEqualTo(100);
              }
            }
          });
    }
  }

  /** Trap: a rank that rejects its own arguments leaves the others waiting for it. */
  @Test
  void impossibleSizeOnOneRankIsRefusedOnAll() {
    try (RankGang gang = Gangs.local(3)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena = arena(communicator)) {
              CollectiveException failure =
                  failure(() -> arena.window(communicator.rank() == 1 ? -1 : 100));
              assertThat(failure.kind()).isEqualTo(Kind.INVALID);
              assertThat(failure)
                  .hasMessageContaining("rank 1 asks for")
                  .hasMessageContaining("-1");
              assertThat(arena.window(100).place()).endsWith("+0");
            }
          });
    }
  }

  @Test
  void rankWithoutRoomFailsAllByNameAndTheArenaGoesOn() throws IOException {
    Path file = Files.createFile(folder.resolve("file"));
    try (RankGang gang = Gangs.local(2)) {
      gang.run(
          communicator -> {
            SymmetricOptions own = communicator.rank() == 1 ? SymmetricOptions.in(file) : options();
            try (SymmetricArena arena = SymmetricArena.open(communicator, own)) {
              for (int attempt = 0; attempt < 2; attempt++) {
                CollectiveException failure = failure(() -> arena.window(100));
                assertThat(failure.kind()).isEqualTo(Kind.IO);
                assertThat(failure).hasMessageContaining("rank 1");
                assertThat(arena.reservedBytes()).isZero();
              }
              communicator.barrier();
            }
          });
    }
  }

  @Test
  void memoryIsReusedOnceAllRanksHaveClosed() {
    try (RankGang gang = Gangs.local(2)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena = arena(communicator)) {
              Window early = arena.window(1000);
              String place = early.place();
              early.close();
              Window late = arena.window(1000);
              assertThat(late.place()).isEqualTo(place);
              late.close();
            }
          });
    }
  }

  @Test
  void memoryIsNotReusedBeforeAllRanksHaveClosed() {
    try (RankGang gang = Gangs.local(2)) {
      gang.run(
          communicator -> {
            try (SymmetricArena arena = arena(communicator)) {
              Window early = arena.window(1000);
              if (communicator.rank() == 0) {
                early.close();
              }
              Window second = arena.window(1000);
              long base = second.address() - early.segment().base(communicator.rank());
              assertThat(base).isGreaterThanOrEqualTo(Window.footprint(1000, 2));
              if (communicator.rank() == 1) {
                early.close();
              }
              Window third = arena.window(1000);
              assertThat(third.place()).endsWith("+0");
            }
          });
    }
  }

  /**
   * Trap: the handle is closed when the host has submitted the work, and the memory is reused while
   * the work still runs.
   */
  @Test
  void memoryIsNotReusedBeforeTheLastUseHasEnded() {
    try (RankGang gang = Gangs.host(folder.resolve("host"), 2)) {
      gang.run(
          communicator -> {
            CountDownLatch held = new CountDownLatch(1);
            try (SymmetricArena arena =
                    SymmetricArena.open(communicator, options().withPoison(true));
                Lane lane = HostLane.open("late-" + communicator.rank(), Duration.ofSeconds(60))) {
              Window window = arena.window(200_000);
              TypedBuffer data = window.buffer(DataType.INT32);
              Values.fill(data, index -> communicator.rank() + 1);
              Window other = arena.window(64);
              Event block = lane.submit("hold", () -> held.await(60, TimeUnit.SECONDS));
              Event sum =
                  lane.submit(
                      "sum in private memory",
                      () -> Values.check("not poisoned", data, i -> communicator.rank() + 1.0));
              CountDownLatch ended = new CountDownLatch(1);
              window.usedUntil(sum);
              sum.whenDone(cause -> ended.countDown());
              window.close();
              // Nothing is reused here: the work has not started.
              Window next = arena.window(200_000);
              assertThat(next.place()).isNotEqualTo(other.place()).doesNotEndWith("+0");
              held.countDown();
              block.await(Gangs.soon());
              sum.await(Gangs.soon());
              assertThat(ended.await(60, TimeUnit.SECONDS)).isTrue();
              assertThat(arena.window(200_000).place()).endsWith("+0");
            }
          });
    }
  }

  /** The same for a collective that every rank delays. */
  @Test
  void delayedCollectiveFindsItsMemoryAfterEverythingWasClosed() {
    try (RankGang gang = Gangs.host(folder.resolve("host"), 2)) {
      gang.run(
          communicator -> {
            CountDownLatch held = new CountDownLatch(1);
            TypedBuffer result =
                TypedBuffer.wrap(ByteBuffer.allocateDirect(400_000), DataType.INT32);
            try (Lane lane =
                HostLane.open("delay-" + communicator.rank(), Duration.ofSeconds(60))) {
              SymmetricArena arena = SymmetricArena.open(communicator, options().withPoison(true));
              Window window = arena.window(400_000);
              TypedBuffer data = window.buffer(DataType.INT32);
              Values.fill(data, index -> communicator.rank() + 1);
              Event block = lane.submit("hold", () -> held.await(60, TimeUnit.SECONDS));
              Event sum = communicator.submit(new AllReduce(data, result, ReduceOp.SUM), lane);
              window.usedUntil(sum);
              arena.close();
              held.countDown();
              block.await(Gangs.soon());
              sum.await(Gangs.soon());
            }
            Values.check("delayed", result, index -> 3);
          });
    }
  }

  @Test
  void closedArenaLeavesNoFilesAndNoMappings() throws IOException {
    try (RankGang gang = Gangs.local(3)) {
      gang.run(
          communicator -> {
            SymmetricArena arena = arena(communicator);
            Window window = arena.window(3_000_000);
            try (Stream<Path> files = Files.list(folder.resolve("symmetric"))) {
              assertThat(window.bytes()).isEqualTo(3_000_000);
              assertThat(files).isEmpty();
            }
            communicator.barrier();
            assertThat(mappings()).isPositive();
            communicator.barrier();
            arena.close();
            arena.close();
            assertThatThrownBy(window::address).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> arena.window(1)).isInstanceOf(IllegalStateException.class);
          });
    }
    assertThat(mappings()).isZero();
    try (Stream<Path> files = Files.list(folder.resolve("symmetric"))) {
      assertThat(files).isEmpty();
    }
  }

  private long mappings() {
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      return maps.filter(line -> line.contains(folder + "/symmetric/")).count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
