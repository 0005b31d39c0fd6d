package io.weft.crosshost;

import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueLease;
import io.weft.collectives.clique.CliqueMember;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.Device;
import java.util.Optional;

/**
 * The communicator of one clique and the wire over it, which come and go: they are there from the
 * first round that needs them until they break or both ends give them up.
 *
 * <p>For the lane's thread; {@link #abort}, {@link #end} and {@link #isOpen} are thread-safe.
 */
final class CliqueLink {
  private final CliqueKey key;
  private final CliqueMember self;
  private final CliqueAccess access;

  private CliqueLease lease;
  private volatile TransferWire wire;

  /** Guards what follows. */
  private final Object lock = new Object();

  private RuntimeException ended;

  /** The lane's thread while it waits for the peer to meet it. */
  private Thread meeting;

  /** Nothing is open yet. */
  CliqueLink(CliqueKey key, CliqueMember self, CliqueAccess access) {
    this.key = key;
    this.self = self;
    this.access = access;
  }

  boolean isOpen() {
    return wire != null;
  }

  /** The wire; only while it is open. */
  TransferWire wire() {
    return wire;
  }

  /**
   * Whether payload can move behind work of devices. Before there is a wire nobody knows; GPUs meet
   * as if it could, while their work still runs.
   */
  boolean mayFollowDevices() {
    TransferWire now = wire;
    return now == null
        ? key.members().get(0).device().kind() == Device.Kind.CUDA
        : now.followsDevices();
  }

  /** Why the wire is broken; empty while it works and where there is none. */
  Optional<RuntimeException> failure() {
    TransferWire now = wire;
    return now == null ? Optional.empty() : now.failure();
  }

  /** Meets the peer; waits for it until {@link #end}: then nobody would come any more. */
  void open() {
    lease = meet();
    wire = access.open(lease);
    failIfEnded();
  }

  private CliqueLease meet() {
    synchronized (lock) {
      failIfEnded();
      meeting = Thread.currentThread();
    }
    try {
      return access.acquire(key, self);
    } finally {
      synchronized (lock) {
        meeting = null;
        if (ended != null) {
          // It was for the meeting.
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

  /** Both ends do this after the same round, so neither is left with half of a communicator. */
  void retire() {
    closeWire();
    access.retire(lease, self);
    lease = null;
  }

  /** Closes what is open; the next round meets the peer anew. */
  void letGo() {
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

  /** Breaks what is under way on both ends; does nothing where there is no wire. */
  void abort(String reason) {
    TransferWire now = wire;
    if (now != null) {
      now.abort(reason);
    }
  }

  /** From now on nothing is opened, and nobody is waited for. */
  @SuppressWarnings("Interruption") // Of the lane's own thread, and only while it meets the peer.
  void end(RuntimeException cause) {
    synchronized (lock) {
      ended = cause;
      if (meeting != null) {
        meeting.interrupt();
      }
    }
  }
}
