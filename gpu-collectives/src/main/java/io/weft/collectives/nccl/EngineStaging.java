package io.weft.collectives.nccl;

import io.weft.collectives.operation.Operation;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.BounceBuffers.Wait;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.util.ArrayList;
import java.util.List;

/** Manages the staging memory of one engine. Confined to the engine's thread. */
final class EngineStaging implements AutoCloseable {
  private static final int BOUNCE_BUFFERS = 2;
  private static final long BOUNCE_BYTES = 4L << 20;

  private final CudaStream stream;
  private final CudaMemoryPool pool;
  private final CudaMemoryPool pinned;
  private final BounceBuffers bounce;
  private final List<StagedBuffers> inUse = new ArrayList<>();

  EngineStaging(CudaStream stream, long bytes) {
    this.stream = stream;
    this.pool = CudaMemoryPool.open(stream.device(), CudaMemoryPool.Kind.DEVICE, bytes);
    this.pinned =
        CudaMemoryPool.open(
            stream.device(), CudaMemoryPool.Kind.PINNED, BOUNCE_BUFFERS * BOUNCE_BYTES);
    this.bounce = new BounceBuffers(stream, pinned, BOUNCE_BYTES);
  }

  BounceBuffers bounce() {
    return bounce;
  }

  /**
   * Copies the input of operations to the device if it is not there. The copies are in use until
   * {@link #release}.
   */
  StagedBuffers of(List<Operation> operations, int rank, Wait wait) {
    StagedBuffers staged = new StagedBuffers(stream, pool, bounce);
    inUse.add(staged);
    for (Operation each : operations) {
      Placement placement = Placement.of(each, rank);
      staged.place(placement.read(), placement.write(), wait);
    }
    return staged;
  }

  /** Copies the results to the host. */
  void copyBack(Wait wait) {
    inUse.forEach(each -> each.copyBack(wait));
  }

  /** Frees the buffers in use. Call this when the stream has passed the operations. */
  void release() {
    inUse.forEach(StagedBuffers::release);
    inUse.clear();
  }

  /** Discards everything in use after a failure. The stream must be idle. */
  void reset() {
    bounce.reset();
  }

  /** Frees all staging memory. The stream must be idle. */
  @Override
  public void close() {
    bounce.close();
    pinned.close();
    pool.close();
  }
}
