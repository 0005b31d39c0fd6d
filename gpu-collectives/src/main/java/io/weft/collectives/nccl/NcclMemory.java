package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemorySource;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Bytes;

/**
 * Allocates device memory through NCCL, in the form that NCCL prefers for windows. Failures are
 * {@link CollectiveException}s of kind IO. Stateless.
 */
final class NcclMemory implements CudaMemorySource {
  /** The driver's mapping granularity on all GPUs so far; NCCL rounds up further where needed. */
  private static final long GRANULARITY = 2L << 20;

  /** Loads NCCL if it is not loaded. */
  public NcclMemory(ProbeOptions options) {
    NcclLibrary.load(options);
  }

  @Override
  public String what() {
    return "device memory of NCCL";
  }

  @Override
  public long granularity() {
    return GRANULARITY;
  }

  @Override
  public long allocate(CudaDevice device, long bytes) {
    device.use();
    long[] address = new long[1];
    check(
        NcclFunctions.ncclMemAlloc(address, bytes),
        "ncclMemAlloc of " + Bytes.text(bytes) + " of " + device);
    return address[0];
  }

  private static void check(int result, String what) {
    if (result != NcclLibrary.SUCCESS) {
      throw NcclLibrary.failure(result, 0, what);
    }
  }

  @Override
  public void free(CudaDevice device, long address, long bytes) {
    device.use();
    check(NcclFunctions.ncclMemFree(address), "ncclMemFree of memory of " + device);
  }
}
