package io.weft.table;

import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.library.DoubleLibraries;
import io.weft.memory.Memory;
import java.time.Duration;

/** A device of the double with a lane and pools; its end asserts that nothing was left behind. */
final class DoubleGpu implements AutoCloseable {
  static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final long BUDGET = 1L << 30;

  final CudaDevice device = DoubleLibraries.cuda().open(0);
  final CudaMemoryPool memory = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, BUDGET);
  final CudaMemoryPool pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, BUDGET);
  final CudaLane lane = CudaLane.open(device, "table", PATIENCE, Priority.NORMAL);

  static Deadline deadline() {
    return Deadline.after(PATIENCE);
  }

  /** Numbers in device memory. */
  CudaMemory ints(int... values) {
    CudaMemory there = memory.take(Math.max(1, 4L * values.length));
    try (CudaMemory here = pinned.take(there.bytes())) {
      Memory.copyFrom(values, Memory.INT_ARRAY, here.address(), 4L * values.length);
      here.usedUntil(
          lane.submit(
              "numbers",
              () -> lane.stream().copyToDevice(there.address(), here.address(), there.bytes())));
      lane.drain(deadline());
    }
    return there;
  }

  @Override
  public void close() {
    lane.close();
    memory.close();
    pinned.close();
    device.close();
    DoubleLibraries.assertClean();
  }
}
