package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.MessageChannel.ByteLink;
import io.weft.collectives.host.MessageChannel.ByteLink.Traffic;
import io.weft.collectives.host.TimeoutDiagnosis.RankStatus;
import io.weft.collectives.host.TimeoutDiagnosis.StatusPoll;
import io.weft.device.Deadline;
import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The ranks on other hosts, as their connections show them. Requests to them go through the agents,
 * so they answer even while they compute. For the thread that runs operations, except {@link
 * #sendFailure}, {@link #sendClosed} and {@link #end}, which are thread-safe.
 */
final class RemoteRanks {
  /** For a communicator on one host. */
  static final RemoteRanks NONE = new RemoteRanks(Map.of(), Optional.empty());

  /** How long a link may be broken before the agents must know the reason. */
  private static final long KNOWN_NANOS = 3_000_000_000L;

  private static final long ASK_EVERY_NANOS = 500_000_000L;
  private static final int BEAT_MILLIS = 20;

  private final Map<Integer, Remote> remotes;
  private final Optional<ControlAgent> agent;

  /**
   * One rank of another host.
   *
   * @param links by the number of the {@link Traffic}
   */
  record Remote(ControlPeer control, List<SocketLink> links) {}

  RemoteRanks(Map<Integer, Remote> remotes, Optional<ControlAgent> agent) {
    this.remotes = Map.copyOf(remotes);
    this.agent = agent;
  }

  /**
   * Starts to exchange messages with the other agents.
   *
   * @param ownWaiting what this rank waits for
   * @param adopt receives a failure that another rank reports
   */
  void start(Supplier<Optional<WaitStatus>> ownWaiting, Consumer<CollectiveException> adopt)
      throws IOException {
    if (agent.isPresent()) {
      agent.get().start(ownWaiting, adopt);
    }
  }

  boolean isEmpty() {
    return remotes.isEmpty();
  }

  boolean has(int rank) {
    return remotes.containsKey(rank);
  }

  ByteLink link(int rank, Traffic traffic) {
    return remotes.get(rank).links().get(traffic.number());
  }

  void sendFailure(CollectiveException cause) {
    remotes.values().forEach(remote -> remote.control().sendFailure(cause));
    agent.ifPresent(ControlAgent::wake);
  }

  void sendClosed() {
    remotes.values().forEach(remote -> remote.control().sendClosed());
    agent.ifPresent(ControlAgent::wake);
  }

  /**
   * Why no more data will come from a rank; empty while it is alive. All data that it has sent was
   * taken before.
   */
  Optional<CollectiveException> linkFailure(int rank, Call call) {
    Remote remote = remotes.get(rank);
    Optional<SocketLink> broken = remote.links().stream().filter(SocketLink::isBroken).findFirst();
    if (broken.isEmpty()) {
      return Optional.empty();
    }
    return switch (remote.control().state()) {
      case FAILED -> remote.control().failure();
      case CLOSED -> Optional.of(TimeoutDiagnosis.closed(call, rank));
      case ENDED -> Optional.of(dead(rank, call, remote.control().end()));
      case OPEN ->
          broken.get().brokenForNanos() > KNOWN_NANOS
              ? Optional.of(dead(rank, call, broken.get().reason()))
              : Optional.empty();
    };
  }

  /**
   * Why a rank will take no further part, as far as its agent knows; empty while it is alive. Data
   * that it sent before may still be on its way.
   */
  Optional<CollectiveException> end(int rank) {
    ControlPeer control = remotes.get(rank).control();
    return switch (control.state()) {
      case OPEN -> Optional.empty();
      case FAILED -> control.failure();
      case CLOSED -> Optional.of(ended(Kind.CLOSED, rank, " closed its communicator"));
      case ENDED ->
          Optional.of(
              ended(Kind.DEAD, rank, " is dead: its connection ended (" + control.end() + ")"));
    };
  }

  private static CollectiveException ended(Kind kind, int rank, String how) {
    return new CollectiveException(kind, List.of(rank), "rank " + rank + how);
  }

  private static CollectiveException dead(int rank, Call call, String reason) {
    return new CollectiveException(
        Kind.DEAD,
        List.of(rank),
        "rank "
            + rank
            + " is dead: its connection ended ("
            + reason
            + ") before it did its part of "
            + call);
  }

  /** Asks a rank from time to time what it waits for, and returns its last answer. */
  Optional<WaitStatus> waiting(int rank) {
    ControlPeer control = remotes.get(rank).control();
    if (control.askAgain(ASK_EVERY_NANOS)) {
      agent.ifPresent(ControlAgent::wake);
    }
    return control.waiting();
  }

  /** Asks every rank what it waits for. Returns the numbers of the requests, by rank. */
  Map<Integer, Long> askAll() {
    Map<Integer, Long> requests = new HashMap<>();
    remotes.forEach((rank, remote) -> requests.put(rank, remote.control().ask()));
    agent.ifPresent(ControlAgent::wake);
    return requests;
  }

  /**
   * Waits for a rank's answer and returns its status.
   *
   * @param request the number of the request
   * @param end the deadline after which the rank counts as stuck
   * @param beat called regularly meanwhile, to show that this rank is alive
   */
  RankStatus status(int rank, Call call, long request, Deadline end, Runnable beat) {
    ControlPeer control = remotes.get(rank).control();
    boolean answered = control.hasAnswered(request);
    while (!answered && !end.expired() && !Thread.currentThread().isInterrupted()) {
      beat.run();
      answered = control.awaitAnswer(request, Deadline.after(Duration.ofMillis(BEAT_MILLIS)));
    }
    return switch (control.state()) {
      case FAILED -> RankStatus.failed(control.failure().orElseThrow());
      case CLOSED -> RankStatus.CLOSED;
      case ENDED -> RankStatus.dead(dead(rank, call, control.end()));
      case OPEN ->
          answered ? RankStatus.open(control.waiting()) : RankStatus.dead(stuck(rank, call));
    };
  }

  private static CollectiveException stuck(int rank, Call call) {
    return new CollectiveException(
        Kind.TIMEOUT,
        List.of(rank),
        "rank "
            + rank
            + " is stuck: it did not do its part of "
            + call
            + " within "
            + call.deadline()
            + ", and its agent does not answer within "
            + Deadline.describe(StatusPoll.LENGTH.toNanos()));
  }
}
