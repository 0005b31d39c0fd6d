package io.weft.collectives.nccl;

import io.weft.collectives.buffer.BufferOwner;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;

/**
 * Device memory as what collectives read and write. The memory stays the caller's to close.
 *
 * @param memory of the device of the communicator it is used with
 */
public record DeviceBuffer(CudaMemory memory) implements BufferOwner {
  @Override
  public long address() {
    return memory.address();
  }

  @Override
  public long bytes() {
    return memory.bytes();
  }

  @Override
  public void usedUntil(Event event) {
    memory.usedUntil(event);
  }
}
