package io.weft.crosshost;

import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueLease;
import io.weft.collectives.clique.CliqueMember;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.Device;
import java.util.Optional;

/**
 * The communicator of one clique and the wire over it. They exist from the first round that needs
 * them until they break or both ends give them up.
 *
 * <p>Used by the lane's thread. {@link #abort}, {@link #end} and {@link #isOpen} are thread-safe.
 */
final class CliqueLink {
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

  /** Creates a link without a communicator. */
  CliqueLink(CliqueKey key, CliqueMember self, CliqueAccess access) {
    this.key = key;
    this.self = self;
    this.access = access;
  }

  boolean isOpen() {
    return wire != null;
  }

  /** The wire; null while the link is not open. */
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

  /** Gives up the communicator. Both ends do this after the same round. */
  void retire() {
    closeWire();
    access.retire(lease, self);
    lease = null;
  }

  /** Closes the wire and the communicator; the next round opens new ones. */
  void closeCommunicator() {
    closeWire();
    if (lease != null) {
      lease.close();
      lease = null;
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
