package io.weft.collectives.nccl;

import io.weft.device.cuda.CudaDevice;
import java.time.Duration;

/**
 * Options of the NCCL implementation beyond {@link io.weft.collectives.CommunicatorOptions}.
 *
 * @param device this rank's GPU, which stays open longer than its communicators
 * @param stagingBytes the limit of device memory for copies of host buffers, for each communicator
 * @param linger how long a close waits for the other ranks to close before it aborts
 * @param shrinks whether NCCL's broken communicators are kept, with nothing running on them, so
 *     that {@link NcclCommunicators#shrink} can reuse them; else they are aborted at once
 */
public record NcclOptions(CudaDevice device, long stagingBytes, Duration linger, boolean shrinks) {
  private static final long STAGING_BYTES = 2L << 30;

  /** Options with 2 GiB for staging, a linger time of 2 s, and no shrinking. */
  public static NcclOptions on(CudaDevice device) {
    return new NcclOptions(device, STAGING_BYTES, Duration.ofSeconds(2), false);
  }

  public NcclOptions withLinger(Duration other) {
    return new NcclOptions(device, stagingBytes, other, shrinks);
  }

  public NcclOptions withShrinking() {
    return new NcclOptions(device, stagingBytes, linger, true);
  }
}
