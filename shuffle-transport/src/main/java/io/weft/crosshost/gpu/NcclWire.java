package io.weft.crosshost.gpu;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.nccl.DeviceCommunicator;
import io.weft.crosshost.wire.CommunicatorWire;
import io.weft.crosshost.wire.Manifest;
import io.weft.crosshost.wire.ManifestEntry;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.Event;
import java.util.List;
import java.util.Optional;

/** A wire between two GPUs by NCCL. The GPU of each end can wait for sources itself. */
final class NcclWire implements TransferWire {
  private final DeviceCommunicator communicator;
  private final boolean followsDevices;
  private final CommunicatorWire wire;

  /**
   * Creates the wire of a communicator.
   *
   * @param communicator with two ranks; the caller closes it
   * @param followsDevices whether sends of this end may wait for their sources on the GPU
   */
  NcclWire(DeviceCommunicator communicator, boolean followsDevices) {
    this.communicator = communicator;
    this.followsDevices = followsDevices;
    this.wire = new CommunicatorWire(communicator);
  }

  @Override
  public List<ManifestEntry> exchange(Manifest mine) {
    return wire.exchange(mine);
  }

  @Override
  public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
    wire.move(sends, receives);
  }

  @Override
  public boolean followsDevices() {
    return followsDevices;
  }

  @Override
  public void moveBehind(List<Event> sources, List<TypedBuffer> sends, List<TypedBuffer> receives) {
    communicator.runGroup(wire.group(sends, receives), sources);
  }

  @Override
  public Optional<RuntimeException> failure() {
    return wire.failure();
  }

  @Override
  public void abort(String reason) {
    wire.abort(reason);
  }
}
