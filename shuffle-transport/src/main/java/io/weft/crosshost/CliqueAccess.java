package io.weft.crosshost;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueLease;
import io.weft.collectives.clique.CliqueMember;
import io.weft.collectives.clique.CliqueStatistics;
import io.weft.collectives.clique.CommunicatorCache;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.Device;
import java.io.IOException;
import java.util.Optional;

/**
 * How cliques get their communicators and make wires of them: those of hosts in one way, those of
 * GPUs in another. Thread-safe. Owns the communicators.
 */
final class CliqueAccess implements AutoCloseable {
  private final CommunicatorCache.Meetings meetings;
  private final Kind hosts;
  private final Optional<Kind> gpus;

  /** For cliques of one kind of devices. */
  private record Kind(CommunicatorCache cache, TransferWire.Factory wires) {}

  CliqueAccess(CrossHostTransfers.Resources resources, CommunicatorOptions options) {
    this.meetings = resources.meetings();
    this.hosts =
        new Kind(new CommunicatorCache(resources.communicators(), options), resources.wires());
    this.gpus =
        resources
            .gpu()
            .map(gpu -> new Kind(new CommunicatorCache(gpu.communicators(), options), gpu.wires()));
  }

  /** All members of a clique are of one kind. */
  private Kind kind(CliqueKey key) {
    return key.members().get(0).device().kind() == Device.Kind.CUDA
        ? gpus.orElseThrow(() -> new TransferException("this executor has no GPU for " + key))
        : hosts;
  }

  /**
   * Meets the peer; waits for it.
   *
   * @throws TransferException when there is nowhere to meet
   */
  CliqueLease acquire(CliqueKey key, CliqueMember self) {
    try (Bootstrap meeting = meetings.open(key, key.rankOf(self))) {
      return kind(key).cache().acquire(key, self, meeting);
    } catch (IOException e) {
      throw new TransferException(self + " cannot meet the other end of " + key + ": " + e, e);
    }
  }

  TransferWire open(CliqueLease lease) {
    return kind(lease.key()).wires().open(lease.communicator());
  }

  /** Gives a communicator up because both ends do. */
  void retire(CliqueLease lease, CliqueMember self) {
    kind(lease.key()).cache().retire(lease, self);
  }

  /** A life of a process has ended. */
  void fail(String process, String incarnation, String reason) {
    hosts.cache().fail(process, incarnation, reason);
    gpus.ifPresent(kind -> kind.cache().fail(process, incarnation, reason));
  }

  /** Of both kinds together. */
  CliqueStatistics statistics() {
    CliqueStatistics own = hosts.cache().statistics();
    return gpus.map(kind -> sum(own, kind.cache().statistics())).orElse(own);
  }

  private static CliqueStatistics sum(CliqueStatistics one, CliqueStatistics other) {
    return new CliqueStatistics(
        one.requests() + other.requests(),
        one.reused() + other.reused(),
        one.created() + other.created(),
        one.discarded() + other.discarded(),
        one.evicted() + other.evicted(),
        one.aborted() + other.aborted(),
        one.refused() + other.refused(),
        one.open() + other.open());
  }

  @Override
  public void close() {
    gpus.ifPresent(kind -> kind.cache().close());
    hosts.cache().close();
  }
}
