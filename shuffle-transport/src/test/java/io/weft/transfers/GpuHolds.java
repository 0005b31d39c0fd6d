package io.weft.transfers;

import com.sun.jna.Library;
import com.sun.jna.Native;
import java.nio.file.Path;

/**
 * Holds a GPU of the doubles that no executor uses. Work that other GPUs enqueue behind its work
 * stops on the device until the test releases it.
 */
final class GpuHolds implements AutoCloseable {
  /** The GPU that is held. */
  static final int GPU = 5;

  /** The GPU that {@link #holdNext} holds. No executor uses it. */
  static final int NEXT = 6;

  private static final int LAUNCH_FAILED = 719;

  private final Cuda cuda;
  private final Nccl nccl;
  private int launches;

  /** A function of the double of libcuda. */
  interface Cuda extends Library {
    void cudaDoubleHold(int device);

    void cudaDoubleLose(int device, int code);
  }

  /** A function of the double of libnccl. */
  interface Nccl extends Library {
    int ncclDoubleLaunches();
  }

  /** Holds nothing yet. */
  GpuHolds() {
    Path folder = Path.of(TestGpus.options().environment().get("LD_LIBRARY_PATH"));
    this.cuda = Native.load(folder.resolve("libcuda.so.1").toString(), Cuda.class);
    this.nccl = Native.load(folder.resolve("libnccl.so.2").toString(), Nccl.class);
  }

  void hold() {
    cuda.cudaDoubleHold(GPU);
  }

  /** Holds the other GPU and releases the first. */
  void holdNext() {
    cuda.cudaDoubleHold(NEXT);
  }

  void release() {
    cuda.cudaDoubleHold(-1);
  }

  /** Fails the enqueued work. */
  void lose() {
    lose(GPU);
  }

  /** As {@link #lose()}, for one of the two GPUs. */
  void lose(int gpu) {
    cuda.cudaDoubleLose(gpu, LAUNCH_FAILED);
  }

  void restore() {
    cuda.cudaDoubleLose(GPU, 0);
    cuda.cudaDoubleLose(NEXT, 0);
  }

  void countLaunches() {
    int unused = nccl.ncclDoubleLaunches();
    launches = 0;
  }

  /** Groups that NCCL has enqueued on all GPUs since {@link #countLaunches}. */
  int launches() {
    launches += nccl.ncclDoubleLaunches();
    return launches;
  }

  @Override
  public void close() {
    restore();
    release();
  }
}
