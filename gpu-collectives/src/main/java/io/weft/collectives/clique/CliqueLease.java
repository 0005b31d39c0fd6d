package io.weft.collectives.clique;

import io.weft.collectives.Communicator;
import io.weft.collectives.clique.CliqueTable.CachedCommunicator;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The right to use a cached communicator, which stays open until the lease is closed. The failure
 * of a member breaks it earlier. Thread-safe.
 */
public final class CliqueLease implements AutoCloseable {
  private final CliqueKey key;
  private final CachedCommunicator cached;
  private final boolean reused;
  private final AtomicBoolean closed = new AtomicBoolean();

  CliqueLease(CliqueKey key, CachedCommunicator cached, boolean reused) {
    this.key = key;
    this.cached = cached;
    this.reused = reused;
  }

  public CliqueKey key() {
    return key;
  }

  CachedCommunicator cached() {
    return cached;
  }

  /** The communicator. The cache closes it, not the lease holder. */
  public Communicator communicator() {
    return cached.communicator();
  }

  /** Whether the communicator existed before; the same answer on all ranks. */
  public boolean isReused() {
    return reused;
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      cached.release();
    }
  }
}
