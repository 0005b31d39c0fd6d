package io.weft.transfers;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.clique.CliqueCommunicators;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.clique.CliqueLease;
import io.weft.collectives.clique.CliqueStatistics;
import io.weft.device.Device;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Creates the communicators and wires of cliques. Cliques of hosts and cliques of GPUs have
 * separate factories. Thread-safe.
 */
final class CliqueAccess implements AutoCloseable {
  private final CliqueCommunicators.BootstrapOpener rendezvous;
  private final Medium hosts;
  private final Optional<Medium> gpus;

  /** The communicators and the wires for one kind of device. */
  private record Medium(CliqueCommunicators communicators, TransferWire.Factory wires) {}

  CliqueAccess(DeviceTransfers.Resources resources, CommunicatorOptions options) {
    this.rendezvous = resources.rendezvous();
    this.hosts =
        new Medium(new CliqueCommunicators(resources.communicators(), options), resources.wires());
    this.gpus =
        resources
            .gpu()
            .map(
                gpu ->
                    new Medium(new CliqueCommunicators(gpu.communicators(), options), gpu.wires()));
  }

  /** Selects hosts or GPUs. All members of a clique are of one kind. */
  private Medium medium(CliqueKey key) {
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
      return medium(key).communicators().acquire(key, self, bootstrap);
    } catch (IOException e) {
      throw new TransferException(self + " cannot reach the other end of " + key + ": " + e, e);
    }
  }

  TransferWire open(CliqueLease lease) {
    return medium(lease.key()).wires().open(lease.communicator());
  }

  /** Refuses communicators with a process incarnation that has ended. Returns their abort. */
  Runnable fail(String process, String incarnation, String reason) {
    List<Runnable> aborts = new ArrayList<>();
    aborts.add(hosts.communicators().fail(process, incarnation, reason));
    gpus.ifPresent(medium -> aborts.add(medium.communicators().fail(process, incarnation, reason)));
    return () -> aborts.forEach(Runnable::run);
  }

  /** The sums over both kinds. */
  CliqueStatistics statistics() {
    CliqueStatistics own = hosts.communicators().statistics();
    return gpus.map(medium -> sum(own, medium.communicators().statistics())).orElse(own);
  }

  private static CliqueStatistics sum(CliqueStatistics one, CliqueStatistics other) {
    return new CliqueStatistics(
        one.requests() + other.requests(),
        one.created() + other.created(),
        one.closed() + other.closed(),
        one.aborted() + other.aborted(),
        one.open() + other.open());
  }

  @Override
  public void close() {
    gpus.ifPresent(medium -> medium.communicators().close());
    hosts.communicators().close();
  }

  /**
   * The communicator of one clique and the wire over it. They exist from the first round that needs
   * them until they break or both ends give them up.
   *
   * <p>Used by the lane's thread. {@link #abort}, {@link #end} and {@link #isOpen} are thread-safe.
   */
  static final class CliqueConnection {
    private final CliqueKey key;
    private final CliqueMember self;
    private final CliqueAccess access;

    private CliqueLease lease;
    private volatile TransferWire wire;

    /** Guards the fields below. */
    private final Object lock = new Object();

    private RuntimeException ended;

    /** The lane's thread while it waits for the peer at the rendezvous; else null. */
    private Thread waitingThread;

    /** Creates a connection without a communicator. */
    CliqueConnection(CliqueKey key, CliqueMember self, CliqueAccess access) {
      this.key = key;
      this.self = self;
      this.access = access;
    }

    boolean isOpen() {
      return wire != null;
    }

    /** The wire; null while the connection is not open. */
    TransferWire wire() {
      return wire;
    }

    /**
     * Whether payload can be enqueued behind device work. Without a wire this is unknown; then GPUs
     * open one as if it could, while their work still runs.
     */
    boolean mayFollowDevices() {
      TransferWire now = wire;
      return now == null
          ? key.members().get(0).device().kind() == Device.Kind.CUDA
          : now.followsDevices();
    }

    /** Why the wire is broken; empty while it works and where there is no wire. */
    Optional<RuntimeException> failure() {
      TransferWire now = wire;
      return now == null ? Optional.empty() : now.failure();
    }

    /** Opens the communicator together with the peer. Waits for the peer until {@link #end}. */
    void open() {
      lease = acquire();
      wire = access.open(lease);
      failIfEnded();
    }

    private CliqueLease acquire() {
      synchronized (lock) {
        failIfEnded();
        waitingThread = Thread.currentThread();
      }
      try {
        return access.acquire(key, self);
      } finally {
        synchronized (lock) {
          waitingThread = null;
          if (ended != null) {
            // The interrupt was meant for the rendezvous.
            boolean unused = Thread.interrupted();
          }
        }
      }
    }

    private void failIfEnded() {
      synchronized (lock) {
        if (ended != null) {
          throw ended;
        }
      }
    }

    /** Closes the wire and the communicator; the next round that needs them opens new ones. */
    void closeCommunicator() {
      try {
        closeWire();
      } finally {
        CliqueLease last = lease;
        lease = null;
        if (last != null) {
          last.close();
        }
      }
    }

    private void closeWire() {
      TransferWire last = wire;
      wire = null;
      if (last != null) {
        last.close();
      }
    }

    /** Aborts the current round at both ends; does nothing without a wire. */
    void abort(String reason) {
      TransferWire now = wire;
      if (now != null) {
        now.abort(reason);
      }
    }

    /** Refuses to open from now on, and ends a wait for the peer. */
    @SuppressWarnings("Interruption") // Interrupts the lane's own thread, only at the rendezvous.
    void end(RuntimeException cause) {
      synchronized (lock) {
        ended = cause;
        if (waitingThread != null) {
          waitingThread.interrupt();
        }
      }
    }
  }
}
