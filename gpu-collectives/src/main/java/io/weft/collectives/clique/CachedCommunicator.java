package io.weft.collectives.clique;

import io.weft.collectives.Communicator;

/** A communicator with a count of its leases. It is closed once it is retired and has no lease. */
final class CachedCommunicator {
  private final Communicator communicator;
  private int leases;
  private boolean retired;
  private boolean closing;

  /** Starts with one lease, for the creator. */
  CachedCommunicator(Communicator communicator) {
    this.communicator = communicator;
    this.leases = 1;
  }

  Communicator communicator() {
    return communicator;
  }

  /** Adds a lease. Returns false when the communicator is retired or broken. */
  synchronized boolean lease() {
    if (retired || communicator.failure().isPresent()) {
      return false;
    }
    leases++;
    return true;
  }

  synchronized boolean isIdle() {
    return leases == 0;
  }

  void release() {
    boolean close;
    synchronized (this) {
      leases--;
      close = mustClose();
    }
    closeIf(close);
  }

  /** Allows no more leases from now on. */
  void retire() {
    boolean close;
    synchronized (this) {
      retired = true;
      close = mustClose();
    }
    closeIf(close);
  }

  private boolean mustClose() {
    boolean now = retired && leases == 0 && !closing;
    closing |= now;
    return now;
  }

  private void closeIf(boolean close) {
    if (close) {
      communicator.close();
    }
  }
}
