package io.weft.device.cuda;

import io.weft.device.cuda.CudaLibrary.GpuDescription;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Access of one GPU to the memory of another GPU of this process. It stays until both contexts end,
 * because other code may use it. This object holds the other context. Thread-safe.
 */
public final class PeerAccess implements AutoCloseable {
  private static final int ALREADY_ENABLED = 704;

  private final int peer;
  private final String what;
  private final AtomicBoolean closed = new AtomicBoolean();

  private PeerAccess(int peer, String what) {
    this.peer = peer;
    this.what = what;
  }

  /**
   * Gives a GPU access to the memory of another GPU.
   *
   * @param peer the other GPU
   * @throws IllegalArgumentException when this process does not see it, or there is no path between
   *     them
   */
  public static PeerAccess open(CudaDevice device, UUID peer) {
    List<GpuDescription> gpus = CudaLibrary.visible();
    GpuDescription other =
        gpus.stream()
            .filter(gpu -> gpu.uuid().equals(peer))
            .findFirst()
            .orElseThrow(
                () ->
                    new IllegalArgumentException(
                        "no GPU is " + peer + "; this process sees " + gpus));
    String what = "the memory of cuda:" + other.ordinal() + " from " + device;
    int own = CudaLibrary.handle(device.description().ordinal());
    int handle = CudaLibrary.handle(other.ordinal());
    int[] can = new int[1];
    CudaLibrary.check(
        CudaPeerFunctions.cuDeviceCanAccessPeer(can, own, handle),
        "cuDeviceCanAccessPeer of " + what);
    if (can[0] == 0) {
      throw new IllegalArgumentException(
          "there is no path to " + what + ": neither NVLink nor a common PCIe root connects them");
    }
    return enable(device, handle, what);
  }

  private static PeerAccess enable(CudaDevice device, int peer, String what) {
    long[] context = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuDevicePrimaryCtxRetain(context, peer),
        "cuDevicePrimaryCtxRetain for " + what);
    PeerAccess access = new PeerAccess(peer, what);
    device.use();
    int result = CudaPeerFunctions.cuCtxEnablePeerAccess(context[0], 0);
    if (result != ALREADY_ENABLED && result != CudaLibrary.SUCCESS) {
      access.close();
      CudaLibrary.check(result, "cuCtxEnablePeerAccess to " + what);
    }
    return access;
  }

  /** Releases the other context. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      CudaLibrary.check(
          CudaFunctions.cuDevicePrimaryCtxRelease_v2(peer),
          "cuDevicePrimaryCtxRelease for " + what);
    }
  }

  @Override
  public String toString() {
    return what;
  }
}
