package io.weft.collectives.clique;

import io.weft.collectives.Communicator;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The right to use a cached communicator, which stays open until the lease is closed (or a member
 * fails, which breaks it). Thread-safe.
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

  /** The communicator; the cache closes it. */
  public Communicator communicator() {
    return cached.communicator();
  }

  /** Whether it was there before; the same answer on all ranks. */
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
