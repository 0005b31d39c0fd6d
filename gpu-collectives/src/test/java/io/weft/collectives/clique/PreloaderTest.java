package io.weft.collectives.clique;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.bootstrap.Preloader;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.device.Deadline;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class PreloaderTest {
  private static final List<Integer> THREE = List.of(0, 1, 2);

  private static Deadline soon() {
    return Deadline.after(CliqueProcesses.TIMEOUT);
  }

  /** Trap: one rank loads, which takes a global lock, while another already spins for it. */
  @Test
  void noRankStartsBeforeAllHaveLoaded() {
    List<Bootstrap> ends = ThreadBootstrap.open(3);
    AtomicInteger loaded = new AtomicInteger();
    List<Integer> seen =
        CliqueProcesses.each(
            THREE,
            rank -> {
              new Preloader()
                  .load(
                      "kernel",
                      () -> {
                        LockSupport.parkNanos(rank * 20_000_000L);
                        loaded.incrementAndGet();
                      })
                  .loadOnAllRanks(ends.get(rank), soon());
              return loaded.get();
            });
    assertThat(seen).containsOnly(3);
  }

  @Test
  void loadingHappensOnceInTheOrderOfItsRequests() {
    StringBuilder order = new StringBuilder();
    Preloader preparation =
        new Preloader()
            .load("driver", () -> order.append("driver "))
            .load("kernel", () -> order.append("kernel "))
            .load("driver", () -> order.append("again "));
    preparation.loadOnAllRanks(ThreadBootstrap.open(1).get(0), soon());
    preparation.load("more", () -> order.append("more "));
    preparation.loadOnAllRanks(ThreadBootstrap.open(1).get(0), soon());
    assertThat(order).hasToString("driver kernel more ");
  }

  @Test
  void failureToLoadReachesAllRanksByName() {
    List<Bootstrap> ends = ThreadBootstrap.open(3);
    List<CollectiveException> failures =
        CliqueProcesses.each(
            THREE,
            rank ->
                catchThrowableOfType(
                    CollectiveException.class,
                    () ->
                        new Preloader()
                            .load(
                                "libnccl",
                                () -> {
                                  if (rank == 1) {
                                    throw new UnsatisfiedLinkError("no such symbol");
                                  }
                                })
                            .loadOnAllRanks(ends.get(rank), soon())));
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .hasMessageContaining("rank 1 cannot load libnccl")
                    .hasMessageContaining("no such symbol"));
  }

  @Test
  void hostCodeLoads() {
    Preloader.ofHost().loadOnAllRanks(ThreadBootstrap.open(1).get(0), soon());
  }
}
