package io.weft.collectives.clique;

import io.weft.collectives.Communicator;

/** A communicator with the number of its leases; closed once retired and no longer leased. */
final class CachedCommunicator {
  private final Communicator communicator;
  private int leases;
  private boolean retired;
  private boolean closing;

  /** Leased once, to whoever made it. */
  CachedCommunicator(Communicator communicator) {
    this.communicator = communicator;
    this.leases = 1;
  }

  Communicator communicator() {
    return communicator;
  }

  /** False when it is retired or broken. */
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

  /** No more leases from now on. */
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
