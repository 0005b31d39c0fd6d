package io.weft.collectives.clique;

import io.weft.collectives.Communicator;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * The communicator of a clique, which is closed with the lease. The failure of a member breaks it
 * earlier. Thread-safe.
 */
public final class CliqueLease implements AutoCloseable {
  private final CliqueKey key;
  private final Communicator communicator;
  private final Consumer<CliqueLease> ended;
  private final AtomicBoolean closed = new AtomicBoolean();

  /**
   * Takes ownership of a communicator.
   *
   * @param ended called once, before the communicator is closed
   */
  CliqueLease(CliqueKey key, Communicator communicator, Consumer<CliqueLease> ended) {
    this.key = key;
    this.communicator = communicator;
    this.ended = ended;
  }

  public CliqueKey key() {
    return key;
  }

  /** The communicator. The lease closes it, not its user. */
  public Communicator communicator() {
    return communicator;
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      ended.accept(this);
      communicator.close();
    }
  }
}
