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
 * Makes the communicators of pairs of GPUs: of NCCL where both ends can, else of the hosts, whose
 * wires map memory of the GPUs where they can. Both ends tell each other what they have and come to
 * the same choice; it is logged with its reason, once for each. Where NCCL fails to start, the pair
 * goes through the hosts, and NCCL is not tried again with that life of the peer. Thread-safe.
 */
final class GpuCommunicators implements CommunicatorFactory {
  private static final Logger LOG = LoggerFactory.getLogger(GpuCommunicators.class);

  private final RankEnd own;
  private final PathRules rules;
  private final Supplier<CommunicatorFactory> nccl;
  private final CommunicatorFactory hosts;
  private final Map<String, String> failed = new ConcurrentHashMap<>();
  private final Set<String> said = ConcurrentHashMap.newKeySet();

  /**
   * Communicators of this executor's GPU.
   *
   * @param rules the same on all executors
   * @param nccl gives who makes those of NCCL; throws where the GPU cannot be opened
   * @param hosts makes those of the hosts
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
      say(peer, rules.arrays(own.end(), peer.end()));
      return attempt.communicator();
    }
    Bootstrap second = new SecondMeeting(bootstrap, attempt.otherId());
    return throughHosts(second, options, peer, attempt.failure());
  }

  /** Why this pair does without NCCL, the same at both ends. */
  private Optional<String> obstacle(BootstrapRounds rounds, RankEnd peer) {
    Supplier<String> mine =
        () -> rules.obstacle(own.end(), peer.end()).orElseGet(() -> obstacleHere(peer));
    return rounds.exchange("gpupath", () -> mine.get().getBytes(StandardCharsets.UTF_8)).stream()
        .map(reason -> new String(reason, StandardCharsets.UTF_8))
        .filter(reason -> !reason.isEmpty())
        .findFirst();
  }

  /** NCCL failed with this peer before, or the GPU cannot be opened; empty if all is well. */
  private String obstacleHere(RankEnd peer) {
    try {
      CommunicatorFactory unused = nccl.get();
      return failed.getOrDefault(peer.life(), "");
    } catch (UnavailableLibraryException | CudaException | IllegalArgumentException e) {
      return own.end().gpu() + " cannot be opened: " + e.getMessage();
    }
  }

  /**
   * What became of NCCL at both ends.
   *
   * @param communicator null where it failed
   * @param failure why, where it did
   * @param otherId for the communicator that is made instead
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

  /** Both ends hear how it went at the other. */
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
          : new CollectiveException(Kind.ABORTED, List.of(), "the other end gave up on NCCL");
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
      Bootstrap meeting, CommunicatorOptions options, RankEnd peer, String reason) {
    boolean mayMap = rules.mayMap(own.end(), peer.end());
    boolean tries = mayMap && own.seesProcessOf(peer);
    if (!tries) {
      String namespaces = mayMap ? "; no CUDA IPC: the processes do not see each other" : "";
      say(peer, rules.throughHosts(own.end(), peer.end(), reason + namespaces));
    }
    return new HostRoute(
        hosts.create(meeting, options), tries, obstacle -> sayMapped(peer, reason, obstacle));
  }

  private void sayMapped(RankEnd peer, String reason, String obstacle) {
    say(
        peer,
        obstacle.isEmpty()
            ? rules.mapped(reason)
            : rules.throughHosts(own.end(), peer.end(), reason + "; no CUDA IPC: " + obstacle));
  }

  private void say(RankEnd peer, PathChoice choice) {
    if (said.add(peer.life() + " " + choice)) {
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
