package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.Operation;
import io.weft.device.cuda.CudaStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Reductions that NCCL does not compute as Weft defines them, over the host's communicator. Slow,
 * but right. Confined to the thread of the stream.
 */
final class HostDetour {
  private final Communicator host;
  private final CudaStream stream;

  HostDetour(Communicator host, CudaStream stream) {
    this.host = host;
    this.stream = stream;
  }

  /** A buffer of the device and its copy on the host. */
  private record Copy(TypedBuffer device, TypedBuffer host) {}

  /**
   * Runs the operation on copies of those buffers that lie on the device.
   *
   * @param awaitStream waits for what is enqueued
   */
  void run(Operation operation, Runnable awaitStream) {
    List<Copy> copies = new ArrayList<>();
    Operation onHost = operation.withBuffers(buffer -> hostCopy(buffer, copies));
    copies.forEach(
        each -> stream.copyToHost(each.host().address(), each.device().address(), bytes(each)));
    awaitStream.run();
    host.run(onHost);
    Placement placement = Placement.of(operation, host.rank());
    copies.stream()
        .filter(each -> placement.write().contains(each.device()))
        .forEach(
            each ->
                stream.copyToDevice(each.device().address(), each.host().address(), bytes(each)));
    awaitStream.run();
  }

  private static long bytes(Copy copy) {
    return copy.device().bytes();
  }

  /** A buffer that is there twice is in place, also in its copy. */
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
