package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.device.Deadline;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WindowTest {
  @TempDir Path folder;

  /** Runs on one rank with its window. */
  private interface Use {
    void run(Communicator communicator, Window window);
  }

  private void onWindows(RankGang gang, long bytes, Use use) {
    gang.run(
        communicator -> {
          SymmetricOptions options =
              SymmetricOptions.in(folder.resolve("symmetric")).withSegmentBytes(1 << 20);
          try (SymmetricArena arena = SymmetricArena.open(communicator, options);
              Window window = arena.window(bytes)) {
            use.run(communicator, window);
            communicator.barrier();
          }
        });
  }

  private static TypedBuffer ints(int count) {
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(4 * count), DataType.INT32);
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "host"})
  void putBytesAreVisibleAfterTheSignal(String implementation) {
    int rounds = 200;
    try (RankGang gang = Gangs.named(implementation, folder.resolve("host"), 3)) {
      onWindows(
          gang,
          3 * 4000,
          (communicator, window) -> {
            int rank = window.rank();
            TypedBuffer mine = ints(1000);
            for (int round = 1; round <= rounds; round++) {
              int now = round;
              Values.fill(mine, index -> rank * 1000 + index + now);
              int next = (rank + 1) % 3;
              int before = (rank + 2) % 3;
              window.put(mine, next, rank * 4000L);
              window.signal(next, 0, round);
              window.await(before, 0, round, Gangs.soon());
              Values.check(
                  "round " + round,
                  window.buffer(before * 4000L, DataType.INT32, 1000),
                  index -> before * 1000 + index + now);
              // The part may be overwritten once its reader has signalled.
              window.signal(before, 1, round);
              window.await(next, 1, round, Gangs.soon());
            }
          });
    }
  }

  @Test
  void getReadsAPeer() {
    try (RankGang gang = Gangs.local(2)) {
      onWindows(
          gang,
          400,
          (communicator, window) -> {
            Values.fill(window.buffer(DataType.INT32), index -> window.rank() * 7 + index);
            communicator.barrier();
            TypedBuffer target = ints(50);
            int peer = 1 - window.rank();
            window.get(target, peer, 200);
            Values.check("got", target, index -> peer * 7 + index + 50);
          });
    }
  }

  /** Trap: waiting for equality misses a peer that is already ahead. */
  @Test
  void signalsAreWaitedForWithAtLeast() {
    try (RankGang gang = Gangs.local(2)) {
      onWindows(
          gang,
          0,
          (communicator, window) -> {
            int peer = 1 - window.rank();
            window.signal(peer, 3, 5);
            communicator.barrier();
            window.await(peer, 3, 4, Gangs.soon());
            window.await(peer, 3, 5, Gangs.soon());
            assertThat(window.signalled(peer, 3)).isEqualTo(5);
            assertThat(window.signalled(window.rank(), 3)).isZero();
            assertThat(window.signalled(peer, 2)).isZero();
          });
    }
  }

  /** Trap: a plain comparison waits without end, or not at all, once the counter has wrapped. */
  @Test
  void signalsWrapAround() {
    try (RankGang gang = Gangs.local(2)) {
      onWindows(
          gang,
          0,
          (communicator, window) -> {
            int peer = 1 - window.rank();
            int start = Integer.MAX_VALUE - 10;
            window.signal(peer, 0, start);
            window.await(peer, 0, start, Gangs.soon());
            for (int i = 1; i <= 1000; i++) {
              window.signal(peer, 0, start + i);
              window.await(peer, 0, start + i, Gangs.soon());
            }
            assertThat(window.signalled(peer, 0)).isNegative();
          });
    }
  }

  @Test
  void boundsAreChecked() {
    try (RankGang gang = Gangs.local(2)) {
      onWindows(
          gang,
          64,
          (communicator, window) -> {
            TypedBuffer four = ints(4);
            for (Runnable wrong :
                List.<Runnable>of(
                    () -> window.put(four, 1, 49),
                    () -> window.put(four, 1, -1),
                    () -> window.put(four, 2, 0),
                    () -> window.get(four, -1, 0),
                    () -> window.get(four, 0, Long.MAX_VALUE),
                    () -> window.signal(0, Window.SLOTS, 1),
                    () -> window.signal(2, 0, 1),
                    () -> window.buffer(60, DataType.INT64, 1))) {
              assertThatThrownBy(wrong::run).isInstanceOf(IndexOutOfBoundsException.class);
            }
            window.put(four, 1, 48);
          });
    }
  }

  /** Trap: a live peer that does nothing. The wait ends and names both sides. */
  @Test
  void silentPeerIsNamedAtTheDeadline() {
    try (RankGang gang = Gangs.local(2)) {
      onWindows(
          gang,
          0,
          (communicator, window) -> {
            if (window.rank() == 0) {
              window.signal(1, 0, 3);
              CollectiveException failure =
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> window.await(1, 5, 7, Deadline.after(Duration.ofMillis(200))));
              assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
              assertThat(failure.ranks()).containsExactly(1);
              assertThat(failure)
                  .hasMessageContaining("rank 0 waited for rank 1")
                  .hasMessageContaining("signal 5")
                  .hasMessageContaining("to 7");
            }
          });
    }
  }

  @Test
  void abortedCommunicatorEndsTheWait() {
    try (RankGang gang = Gangs.host(folder.resolve("host"), 2)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator -> {
                SymmetricOptions options = SymmetricOptions.in(folder.resolve("symmetric"));
                try (SymmetricArena arena = SymmetricArena.open(communicator, options);
                    Window window = arena.window(0)) {
                  if (communicator.rank() == 1) {
                    communicator.abort("the data is bad");
                    return null;
                  }
                  return catchThrowableOfType(
                      CollectiveException.class, () -> window.await(1, 0, 1, Gangs.soon()));
                }
              });
      assertThat(failures.get(0).kind()).isEqualTo(Kind.ABORTED);
      assertThat(failures.get(0)).hasMessageContaining("the data is bad");
    }
  }

  @Test
  void interruptEndsTheWait() {
    try (RankGang gang = Gangs.local(2)) {
      onWindows(
          gang,
          0,
          (communicator, window) -> {
            if (window.rank() == 0) {
              Thread.currentThread().interrupt();
              CollectiveException failure =
                  catchThrowableOfType(
                      CollectiveException.class, () -> window.await(1, 0, 1, Gangs.soon()));
              assertThat(Thread.interrupted()).isTrue();
              assertThat(failure.kind()).isEqualTo(Kind.ABORTED);
            }
          });
    }
  }

  @Test
  void closedWindowIsRefused() {
    try (RankGang gang = Gangs.local(1)) {
      onWindows(
          gang,
          64,
          (communicator, window) -> {
            window.close();
            window.close();
            assertThatThrownBy(window::address).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> window.put(ints(1), 0, 0))
                .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> window.signal(0, 0, 1))
                .isInstanceOf(IllegalStateException.class);
          });
    }
  }
}
