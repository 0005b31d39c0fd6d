package io.weft.spark.feed;

import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.memory.Memory;
import io.weft.spark.gpu.ExecutorGpu;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** A rank's own stream, on which it reads batches of the GPU. */
final class GpuDownload implements AutoCloseable {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private final CudaMemoryPool pinned;
  private final CudaStream stream;
  private final BounceBuffers bounce;

  GpuDownload() {
    CudaDevice device = ExecutorGpu.current().open().device();
    pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1 << 22);
    stream = CudaStream.open(device, "a rank's own", Priority.NORMAL);
    bounce = new BounceBuffers(stream, pinned, 1 << 20);
  }

  /** The stream's handle for the driver. */
  long stream() {
    return stream.handle();
  }

  /** The ids of a batch; fails if x does not match them. */
  List<Long> ids(GpuFeedBatch batch) {
    batch.orderBefore(stream.handle());
    ByteBuffer ids = bytes(batch.tensor("id"));
    ByteBuffer x = bytes(batch.tensor("x"));
    batch.usedOn(stream.handle());
    List<Long> seen = new ArrayList<>();
    for (int row = 0; row < batch.rows(); row++) {
      long id = ids.getLong(8 * row);
      seen.add(id);
      for (int i = 0; i < FeedData.WIDTH; i++) {
        float found = x.getFloat(4 * (FeedData.WIDTH * row + i));
        if (found != id + i) {
          throw new AssertionError("row " + id + " has " + found + " at " + i);
        }
      }
    }
    return seen;
  }

  ByteBuffer bytes(GpuTensor tensor) {
    int bytes = (int) tensor.type().bytes();
    ByteBuffer to = ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    if (bytes > 0) {
      bounce.copyToHost(Memory.addressOf(to), tensor.buffer().address(), bytes, GpuDownload::await);
    }
    return to;
  }

  private static void await(CudaMark mark) {
    Deadline deadline = Deadline.after(TIMEOUT);
    while (!mark.isReached()) {
      if (deadline.expired()) {
        throw new AssertionError("the device does not become idle");
      }
      Thread.onSpinWait();
    }
  }

  @Override
  public void close() {
    stream.close();
    bounce.close();
    pinned.close();
  }
}
