package io.weft.table;

import io.weft.device.Event;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaModule;

/** The kernels of {@code src/main/cuda/partition.cu} on one device. Thread-safe. */
final class PartitionKernels implements AutoCloseable {
  private final CudaModule module;
  private final CountingKernels counting;
  private final PackingKernels packing;

  private PartitionKernels(CudaModule module) {
    this.module = module;
    this.counting = new CountingKernels(module);
    this.packing = new PackingKernels(module);
  }

  static PartitionKernels load(CudaDevice device) {
    CudaModule module = CudaModule.load(device, "partition");
    try {
      return new PartitionKernels(module);
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  CountingKernels counting() {
    return counting;
  }

  PackingKernels packing() {
    return packing;
  }

  /** Keeps the kernels loaded until the event has ended, even if this is closed earlier. */
  void usedUntil(Event event) {
    module.usedUntil(event);
  }

  /** Closes the kernels; none is launched any more. */
  @Override
  public void close() {
    module.close();
  }
}
