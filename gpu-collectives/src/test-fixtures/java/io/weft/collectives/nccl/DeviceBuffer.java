package io.weft.collectives.nccl;

import io.weft.collectives.BufferOwner;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;

/**
 * Device memory that collectives read and write. The caller still has to close the memory.
 *
 * @param memory of the device of the communicator that uses it
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
