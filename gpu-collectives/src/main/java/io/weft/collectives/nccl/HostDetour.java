package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.Operation;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.BounceBuffers.Wait;
import io.weft.device.cuda.CudaStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs reductions that NCCL does not compute as Weft defines them over the host's communicator.
 * Slow but exact. Confined to the thread of the stream.
 */
final class HostDetour {
  private final Communicator host;
  private final CudaStream stream;
  private final BounceBuffers bounce;

  HostDetour(Communicator host, CudaStream stream, BounceBuffers bounce) {
    this.host = host;
    this.stream = stream;
    this.bounce = bounce;
  }

  /** A buffer of the device and its copy on the host. */
  private record Copy(TypedBuffer device, TypedBuffer host) {}

  /**
   * Runs the operation on host copies of the device buffers. Returns when the copies of the results
   * to the device are enqueued.
   */
  void run(Operation operation, Wait wait) {
    List<Copy> copies = new ArrayList<>();
    Operation onHost = operation.withBuffers(buffer -> hostCopy(buffer, copies));
    for (Copy each : copies) {
      bounce.copyToHost(each.host().address(), each.device().address(), bytes(each), wait);
    }
    host.run(onHost);
    Placement placement = Placement.of(operation, host.rank());
    for (Copy each : copies) {
      if (placement.write().contains(each.device())) {
        bounce.copyToDevice(each.device().address(), each.host().address(), bytes(each), wait);
      }
    }
  }

  private static long bytes(Copy copy) {
    return copy.device().bytes();
  }

  /** A buffer that occurs twice is in place, so its copy is shared too. */
  @SuppressWarnings("ReferenceEquality")
  private TypedBuffer hostCopy(TypedBuffer buffer, List<Copy> copies) {
    if (buffer.count() == 0 || !stream.device().isDeviceMemory(buffer.address())) {
      return buffer;
    }
    for (Copy each : copies) {
      if (each.device() == buffer) {
        return each.host();
      }
    }
    ByteBuffer memory = ByteBuffer.allocateDirect(Math.toIntExact(buffer.bytes()));
    Copy copy = new Copy(buffer, TypedBuffer.wrap(memory, buffer.type()));
    copies.add(copy);
    return copy.host();
  }
}
