package io.weft.crosshost.wire;

import io.weft.collectives.Communicator;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.Receive;
import io.weft.collectives.operation.Send;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** A wire over a communicator for host memory. */
public final class CommunicatorWire implements TransferWire {
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
