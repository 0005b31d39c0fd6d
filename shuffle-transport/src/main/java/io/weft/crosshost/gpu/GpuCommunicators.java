package io.weft.crosshost.gpu;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaException;
import io.weft.device.library.UnavailableLibraryException;
import io.weft.peer.PathChoice;
import io.weft.peer.PathRules;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates the communicators of pairs of GPUs: with NCCL where both ends can use it, else over the
 * hosts. Wires over the hosts map GPU memory where they can. Both ends exchange what they have and
 * reach the same choice, which is logged once with its reason. If NCCL fails to start, the pair
 * goes over the hosts, and NCCL is not tried again with that incarnation of the peer. Thread-safe.
 */
final class GpuCommunicators implements CommunicatorFactory {
  private static final Logger LOG = LoggerFactory.getLogger(GpuCommunicators.class);

  private final RankEnd own;
  private final PathRules rules;
  private final Supplier<CommunicatorFactory> nccl;
  private final CommunicatorFactory hosts;
  private final Map<String, String> failed = new ConcurrentHashMap<>();
  private final Set<String> logged = ConcurrentHashMap.newKeySet();

  /**
   * Creates the factory of this executor's GPU.
   *
   * @param rules the same on all executors
   * @param nccl gives the factory of NCCL's communicators; throws if the GPU cannot be opened
   * @param hosts creates communicators of the hosts
   */
  GpuCommunicators(
      RankEnd own, PathRules rules, Supplier<CommunicatorFactory> nccl, CommunicatorFactory hosts) {
    this.own = own;
    this.rules = rules;
    this.nccl = nccl;
    this.hosts = hosts;
  }

  @Override
  public Communicator create(Bootstrap bootstrap, CommunicatorOptions options) {
    if (bootstrap.nranks() != 2) {
      throw CollectiveException.invalid("a pair of GPUs is not " + bootstrap.nranks() + " ranks");
    }
    BootstrapRounds rounds = new BootstrapRounds(bootstrap, Deadline.after(options.timeout()));
    RankEnd peer =
        RankEnd.decode(rounds.exchange("gpuends", own::encode).get(1 - bootstrap.rank()));
    Optional<String> obstacle = obstacle(rounds, peer);
    if (obstacle.isPresent()) {
      return throughHosts(bootstrap, options, peer, obstacle.get());
    }
    Attempt attempt = attempt(bootstrap, rounds, options, peer);
    if (attempt.isWell()) {
      log(peer, rules.arrays(own.end(), peer.end()));
      return attempt.communicator();
    }
    Bootstrap second = new SecondMeeting(bootstrap, attempt.otherId());
    return throughHosts(second, options, peer, attempt.failure());
  }

  /** Why this pair does not use NCCL, the same at both ends. */
  private Optional<String> obstacle(BootstrapRounds rounds, RankEnd peer) {
    Supplier<String> mine =
        () -> rules.obstacle(own.end(), peer.end()).orElseGet(() -> obstacleHere(peer));
    return rounds.exchange("gpupath", () -> mine.get().getBytes(StandardCharsets.UTF_8)).stream()
        .map(reason -> new String(reason, StandardCharsets.UTF_8))
        .filter(reason -> !reason.isEmpty())
        .findFirst();
  }

  /** Why this end cannot use NCCL: an earlier failure with this peer, or the GPU does not open. */
  private String obstacleHere(RankEnd peer) {
    try {
      CommunicatorFactory unused = nccl.get();
      return failed.getOrDefault(peer.life(), "");
    } catch (UnavailableLibraryException | CudaException | IllegalArgumentException e) {
      return own.end().gpu() + " cannot be opened: " + e.getMessage();
    }
  }

  /**
   * The result of the start of NCCL at both ends.
   *
   * @param communicator null if the start failed
   * @param failure the reason, if it failed
   * @param otherId for the communicator over the hosts, if it failed
   */
  private record Attempt(Communicator communicator, String failure, UniqueId otherId) {
    boolean isWell() {
      return communicator != null;
    }
  }

  private Attempt attempt(
      Bootstrap bootstrap, BootstrapRounds rounds, CommunicatorOptions options, RankEnd peer) {
    Communicator made = null;
    CollectiveException failure = null;
    try {
      made = nccl.get().create(bootstrap, options);
    } catch (CollectiveException e) {
      failure = e;
      String unused = failed.putIfAbsent(peer.life(), Outcome.reason(e));
    }
    try {
      return settle(rounds, made, failure);
    } catch (RuntimeException e) {
      discard(made, String.valueOf(e.getMessage()));
      throw e;
    }
  }

  /** Exchanges the outcomes of both ends. */
  private static Attempt settle(
      BootstrapRounds rounds, Communicator made, CollectiveException failure) {
    List<Outcome> all =
        rounds.exchange("gpunccl", () -> Outcome.of(failure).encode()).stream()
            .map(Outcome::decode)
            .toList();
    if (all.stream().allMatch(Outcome::isWell)) {
      return new Attempt(made, "", null);
    }
    Optional<Outcome> obstacle = all.stream().filter(Outcome::isObstacle).findFirst();
    if (obstacle.isEmpty()) {
      throw failure != null
          ? failure
          : new CollectiveException(Kind.ABORTED, List.of(), "the other end could not start NCCL");
    }
    discard(made, "NCCL failed at the other end");
    return new Attempt(null, obstacle.get().reason(), UniqueId.decode(all.get(0).id()));
  }

  private static void discard(Communicator made, String reason) {
    if (made != null) {
      made.abort(reason);
      made.close();
    }
  }

  private Communicator throughHosts(
      Bootstrap bootstrap, CommunicatorOptions options, RankEnd peer, String reason) {
    boolean mayMap = rules.mayMap(own.end(), peer.end());
    boolean tries = mayMap && own.seesProcessOf(peer);
    if (!tries) {
      String namespaces = mayMap ? "; no CUDA IPC: the processes do not see each other" : "";
      log(peer, rules.throughHosts(own.end(), peer.end(), reason + namespaces));
    }
    return new HostRoute(
        hosts.create(bootstrap, options), tries, obstacle -> logMapped(peer, reason, obstacle));
  }

  private void logMapped(RankEnd peer, String reason, String obstacle) {
    log(
        peer,
        obstacle.isEmpty()
            ? rules.mapped(reason)
            : rules.throughHosts(own.end(), peer.end(), reason + "; no CUDA IPC: " + obstacle));
  }

  private void log(RankEnd peer, PathChoice choice) {
    if (logged.add(peer.life() + " " + choice)) {
      LOG.info(
          "Arrays between {} of executor {} and {} of executor {} go by {}",
          own.end().gpu(),
          own.life(),
          peer.end().gpu(),
          peer.life(),
          choice);
    }
  }
}
