package io.weft.crosshost.wire;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Event;
import java.util.List;
import java.util.Optional;

/**
 * One end of a clique of two, as transfers use it. Both ends call the same methods in the same
 * order. Used by one thread at a time; only {@link #abort} is thread-safe, and may be called after
 * the wire was closed.
 *
 * <p>Every method throws the communicator's exceptions; the wire is broken afterwards.
 */
public interface TransferWire extends AutoCloseable {
  /** Opens the wire of a communicator with two ranks. */
  @FunctionalInterface
  interface Factory {
    TransferWire open(Communicator communicator);
  }

  /**
   * Sends this end's offers and returns the peer's. Waits for the peer.
   *
   * @throws IllegalArgumentException if the peer's message is not a manifest
   */
  List<ManifestEntry> exchange(Manifest mine);

  /** Moves payload to the peer and from the peer as one group, each in the order of its list. */
  void move(List<TypedBuffer> sends, List<TypedBuffer> receives);

  /** Whether payload can be enqueued behind device work, see {@link #moveBehind}. */
  default boolean followsDevices() {
    return false;
  }

  /**
   * As {@link #move}, behind recorded work: the devices wait for the work themselves. The payload
   * also moves if the work fails, and is void then. The sending end knows that, and tells the other
   * end.
   *
   * @param sources recorded work of this end's sends, see {@link Event#isOnDevice}
   * @throws UnsupportedOperationException unless {@link #followsDevices}
   */
  default void moveBehind(
      List<Event> sources, List<TypedBuffer> sends, List<TypedBuffer> receives) {
    throw new UnsupportedOperationException(this + " does not follow devices");
  }

  /** Why the wire is broken, at this end or, if known, at the peer; empty while it works. */
  Optional<RuntimeException> failure();

  /** Breaks the wire at both ends. */
  void abort(String reason);

  /** Frees the wire's own resources. The owner closes the communicator. */
  @Override
  default void close() {}
}
