package io.weft.shuffle.device;

import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.Memory;
import io.weft.testgpus.TestMachine;
import java.time.Duration;

/**
 * A device of the {@link TestMachine} with a lane and pools. On a double, the close checks that
 * nothing was leaked.
 */
final class TableGpu implements AutoCloseable {
  static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final long BUDGET = 1L << 30;

  final CudaDevice device = TestMachine.open(0);
  final CudaMemoryPool memory;
  final CudaMemoryPool pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, BUDGET);
  final CudaLane lane = CudaLane.open(device, "table", TIMEOUT, Priority.NORMAL);

  TableGpu() {
    this(BUDGET);
  }

  /** Uses at most this much of the device's memory. */
  TableGpu(long bytes) {
    memory = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, bytes);
  }

  /** Whether figures of speed mean something. */
  static boolean hasSpeed() {
    return TestMachine.hasSpeed();
  }

  static Deadline deadline() {
    return Deadline.after(TIMEOUT);
  }

  /** Leaves freed memory in the pool in which no byte is zero. */
  void soil() {
    int bytes = 4 << 20;
    try (CudaMemory there = memory.take(8L * bytes);
        CudaMemory here = pinned.take(bytes)) {
      Memory.setMemory(here.address(), bytes, (byte) -1);
      for (int i = 0; i < 8; i++) {
        long to = there.address() + (long) i * bytes;
        lane.submit("dirt", () -> lane.stream().copyToDevice(to, here.address(), bytes))
            .await(deadline());
      }
    }
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
    TestMachine.assertClean();
  }
}
