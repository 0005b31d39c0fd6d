package io.weft.transfers;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.Operation;
import io.weft.collectives.Receive;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;
import io.weft.transfers.Manifest.ManifestEntry;
import java.nio.ByteBuffer;
import java.util.ArrayList;
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

  /**
   * Whether both ends should give up the wire soon although it may be needed again: it holds memory
   * that the owner needs elsewhere, at this end or, if known, at the peer. Another thread may call
   * this while the wire is open and not in use. It does not wait.
   */
  default boolean holdsWantedMemory() {
    return false;
  }

  /** Why the wire is broken, at this end or, if known, at the peer; empty while it works. */
  Optional<RuntimeException> failure();

  /** Breaks the wire at both ends. */
  void abort(String reason);

  /** Frees the wire's own resources. The owner closes the communicator. */
  @Override
  default void close() {}

  /** A wire over a communicator for host memory. */
  public static final class CommunicatorWire implements TransferWire {
    private final Communicator communicator;
    private final int peer;
    private final ByteBuffer mine = ByteBuffer.allocateDirect(Manifest.BYTES);
    private final ByteBuffer theirs = ByteBuffer.allocateDirect(Manifest.BYTES);
    private final List<Operation> manifests;

    /**
     * Creates the wire of a communicator.
     *
     * @param communicator with two ranks; the caller closes it
     */
    public CommunicatorWire(Communicator communicator) {
      if (communicator.nranks() != 2) {
        throw new IllegalArgumentException(communicator + " is not one of two ranks");
      }
      this.communicator = communicator;
      this.peer = 1 - communicator.rank();
      this.manifests =
          List.of(
              new Send(TypedBuffer.wrap(mine, DataType.INT8), peer),
              new Receive(TypedBuffer.wrap(theirs, DataType.INT8), peer));
    }

    @Override
    public List<ManifestEntry> exchange(Manifest manifest) {
      manifest.encode(mine);
      communicator.runGroup(manifests);
      return Manifest.decode(theirs);
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      communicator.runGroup(group(sends, receives));
    }

    /** The operations that {@link #move} runs. */
    public List<Operation> group(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      List<Operation> group = new ArrayList<>(sends.size() + receives.size());
      sends.forEach(buffer -> group.add(new Send(buffer, peer)));
      receives.forEach(buffer -> group.add(new Receive(buffer, peer)));
      return group;
    }

    @Override
    public Optional<RuntimeException> failure() {
      Optional<CollectiveException> failure = communicator.failure();
      if (failure.isEmpty() && communicator instanceof InPlaceRegions regions) {
        failure = regions.peerFailure(peer);
      }
      return failure.map(RuntimeException.class::cast);
    }

    @Override
    public void abort(String reason) {
      communicator.abort(reason);
    }
  }
}
