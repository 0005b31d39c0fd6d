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
 * Creates the communicators and wires of cliques. Cliques of hosts and cliques of GPUs have
 * separate caches. Thread-safe. Owns the communicators.
 */
final class CliqueAccess implements AutoCloseable {
  private final CommunicatorCache.Meetings rendezvous;
  private final Kind hosts;
  private final Optional<Kind> gpus;

  /** The cache and the wires for one kind of device. */
  private record Kind(CommunicatorCache cache, TransferWire.Factory wires) {}

  CliqueAccess(CrossHostTransfers.Resources resources, CommunicatorOptions options) {
    this.rendezvous = resources.rendezvous();
    this.hosts =
        new Kind(new CommunicatorCache(resources.communicators(), options), resources.wires());
    this.gpus =
        resources
            .gpu()
            .map(gpu -> new Kind(new CommunicatorCache(gpu.communicators(), options), gpu.wires()));
  }

  /** Selects the kind. All members of a clique are of one kind. */
  private Kind kind(CliqueKey key) {
    return key.members().get(0).device().kind() == Device.Kind.CUDA
        ? gpus.orElseThrow(() -> new TransferException("this executor has no GPU for " + key))
        : hosts;
  }

  /**
   * Acquires the communicator together with the peer, and waits for the peer.
   *
   * @throws TransferException if the rendezvous cannot be joined
   */
  CliqueLease acquire(CliqueKey key, CliqueMember self) {
    try (Bootstrap bootstrap = rendezvous.open(key, key.rankOf(self))) {
      return kind(key).cache().acquire(key, self, bootstrap);
    } catch (IOException e) {
      throw new TransferException(self + " cannot reach the other end of " + key + ": " + e, e);
    }
  }

  TransferWire open(CliqueLease lease) {
    return kind(lease.key()).wires().open(lease.communicator());
  }

  /** Gives up a communicator. Both ends call this after the same round. */
  void retire(CliqueLease lease, CliqueMember self) {
    kind(lease.key()).cache().retire(lease, self);
  }

  /** Fails the communicators with a process incarnation that has ended. */
  void fail(String process, String incarnation, String reason) {
    hosts.cache().fail(process, incarnation, reason);
    gpus.ifPresent(kind -> kind.cache().fail(process, incarnation, reason));
  }

  /** The sums over both kinds. */
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
