package io.weft.collectives.clique;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Device;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Threads that act as processes. Each has its own communicators. Bootstraps between them are
 * created on first use.
 */
final class CliqueProcesses implements AutoCloseable {
  static final Duration TIMEOUT = Duration.ofSeconds(60);

  private record RendezvousKey(CliqueKey key, String name) {}

  private final List<CliqueCommunicators> all = new ArrayList<>();
  private final ConcurrentMap<RendezvousKey, List<Bootstrap>> bootstraps =
      new ConcurrentHashMap<>();

  CliqueProcesses(int processes) {
    this(processes, LocalCommunicator::create, TIMEOUT);
  }

  CliqueProcesses(int processes, CommunicatorFactory factory, Duration timeout) {
    for (int process = 0; process < processes; process++) {
      all.add(new CliqueCommunicators(factory, CommunicatorOptions.DEFAULT.withTimeout(timeout)));
    }
  }

  static CliqueMember member(int process) {
    return member(process, "first");
  }

  static CliqueMember member(int process, String incarnation) {
    return new CliqueMember("executor-" + process, incarnation, Device.HOST);
  }

  static List<CliqueMember> members(int... processes) {
    List<CliqueMember> members = new ArrayList<>();
    for (int process : processes) {
      members.add(member(process));
    }
    return members;
  }

  static CliqueKey clique(String purpose, int... processes) {
    return new CliqueKey(members(processes), purpose);
  }

  CliqueCommunicators communicators(int process) {
    return all.get(process);
  }

  /** One rank's end of the bootstrap with this name. */
  Bootstrap bootstrap(CliqueKey key, int rank, String name) {
    return bootstraps
        .computeIfAbsent(
            new RendezvousKey(key, name), rendezvous -> ThreadBootstrap.open(key.size()))
        .get(rank);
  }

  CliqueLease acquire(CliqueKey key, int process, String rendezvous) {
    return acquire(key, member(process), communicators(process), rendezvous);
  }

  CliqueLease acquire(
      CliqueKey key, CliqueMember self, CliqueCommunicators communicators, String rendezvous) {
    return communicators.acquire(key, self, bootstrap(key, key.rankOf(self), rendezvous));
  }

  /** The work of one process. */
  interface Part<T> {
    T run(int process) throws Exception;
  }

  /** Runs the part of each process on its own thread. */
  static <T> List<T> each(List<Integer> processes, Part<T> part) {
    List<CompletableFuture<T>> futures = new ArrayList<>();
    for (int process : processes) {
      futures.add(start(process, part));
    }
    return futures.stream().map(CliqueProcesses::join).toList();
  }

  static <T> CompletableFuture<T> start(int process, Part<T> part) {
    CompletableFuture<T> future = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                future.complete(part.run(process));
              } catch (Throwable e) {
                future.completeExceptionally(e);
              }
            },
            "process-" + process);
    thread.setDaemon(true);
    thread.start();
    return future;
  }

  static <T> T join(CompletableFuture<T> future) {
    try {
      return future.get(2 * TIMEOUT.toSeconds(), TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      throw new AssertionError(e.getCause().toString(), e.getCause());
    } catch (InterruptedException | TimeoutException e) {
      throw new AssertionError(e);
    }
  }

  /** Uses the communicator together with all members. */
  static void use(CliqueLease lease) {
    Communicator communicator = lease.communicator();
    communicator.barrier();
  }

  @Override
  public void close() {
    all.forEach(CliqueCommunicators::close);
  }
}
