package io.weft.transfers;

import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.DeviceBuffer;
import io.weft.device.Deadline;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Arrays in GPU memory. Executor n has GPU n. */
final class GpuArrays implements AutoCloseable {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private final Map<Integer, Gpu> gpus = new TreeMap<>();
  private final List<CudaMemory> memories = new ArrayList<>();

  private record Gpu(CudaDevice device, CudaMemoryPool pool, CudaLane lane) {
    static Gpu open(int ordinal) {
      CudaDevice device = TestGpus.cuda().open(TestGpus.ordinal(ordinal));
      return new Gpu(
          device,
          CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1L << 30),
          CudaLane.open(device, "arrays-" + ordinal, TIMEOUT, Lane.Priority.NORMAL));
    }
  }

  private Gpu gpu(int ordinal) {
    return gpus.computeIfAbsent(ordinal, Gpu::open);
  }

  /** A lane of an executor's GPU. */
  CudaLane lane(int executor) {
    return gpu(executor).lane();
  }

  /** Memory of an executor's GPU with an array's type and count, and any content. */
  TypedBuffer like(int executor, TypedBuffer array) {
    CudaMemory memory = gpu(executor).pool().take(array.bytes());
    memories.add(memory);
    return TypedBuffer.of(new DeviceBuffer(memory), 0, array.type(), array.count());
  }

  /** The array on an executor's GPU. */
  TypedBuffer copy(int executor, TypedBuffer array) {
    TypedBuffer copy = like(executor, array);
    CudaLane lane = lane(executor);
    lane.submit(
            "a copy",
            () -> lane.stream().copyToDevice(copy.address(), array.address(), array.bytes()))
        .await(Deadline.after(TIMEOUT));
    return copy;
  }

  /** The bytes in memory of any GPU. The doubles use host memory, which is read directly. */
  TypedBuffer toHost(TypedBuffer array) {
    if (TestGpus.areDoubles()) {
      return array;
    }
    CudaLane lane = lane(0);
    ByteBuffer memory = ByteBuffer.allocateDirect((int) array.bytes());
    TypedBuffer copy = TypedBuffer.wrap(memory, array.type());
    lane.submit(
            "a copy",
            () -> lane.stream().copyToHost(copy.address(), array.address(), array.bytes()))
        .await(Deadline.after(TIMEOUT));
    return copy;
  }

  @Override
  public void close() {
    memories.forEach(CudaMemory::close);
    memories.clear();
    for (Gpu gpu : gpus.values()) {
      gpu.lane().close();
      gpu.pool().close();
      gpu.device().close();
    }
    gpus.clear();
  }
}
