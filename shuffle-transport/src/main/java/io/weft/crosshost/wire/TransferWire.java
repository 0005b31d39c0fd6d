package io.weft.crosshost.wire;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Event;
import java.util.List;
import java.util.Optional;

/**
 * One end of a clique of two, as transfers use it. Both ends call the same methods in the same
 * order. One thread at a time, except for {@link #abort}, which may come late.
 *
 * <p>Every method throws what the communicator throws, and then the wire is broken.
 */
public interface TransferWire extends AutoCloseable {
  /** Makes the wire of a communicator with two ranks. */
  @FunctionalInterface
  interface Factory {
    TransferWire open(Communicator communicator);
  }

  /**
   * Tells the peer what this end offers and returns what the peer offers; waits for the peer.
   *
   * @throws IllegalArgumentException when what the peer says is no manifest
   */
  List<ManifestEntry> exchange(Manifest mine);

  /** Moves payload as one group: to the peer and from it, each in this order. */
  void move(List<TypedBuffer> sends, List<TypedBuffer> receives);

  /** Whether payload can move behind work of devices, see {@link #moveBehind}. */
  default boolean followsDevices() {
    return false;
  }

  /**
   * As {@link #move}, once the devices have done work that is recorded: they wait for it by
   * themselves. The payload moves also where that work fails, and is nobody's data then; who sent
   * it knows, and tells the other.
   *
   * @param sources recorded work, see {@link Event#isOnDevice}; of this end's sends
   * @throws UnsupportedOperationException unless {@link #followsDevices}
   */
  default void moveBehind(
      List<Event> sources, List<TypedBuffer> sends, List<TypedBuffer> receives) {
    throw new UnsupportedOperationException(this + " does not follow devices");
  }

  /** Why the wire is broken, here or at the peer as far as that is known; empty while it works. */
  Optional<RuntimeException> failure();

  /** Breaks the wire on both ends. */
  void abort(String reason);

  /** Gives back what the wire itself has; the communicator is its owner's. */
  @Override
  default void close() {}
}
