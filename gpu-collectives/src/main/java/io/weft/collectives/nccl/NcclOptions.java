package io.weft.collectives.nccl;

import io.weft.device.cuda.CudaDevice;
import java.time.Duration;

/**
 * What the NCCL implementation wants to know beyond {@link
 * io.weft.collectives.CommunicatorOptions}.
 *
 * @param device this rank's GPU, open for longer than its communicators
 * @param stagingBytes the most device memory for copies of host buffers, for each communicator
 * @param linger how long a close waits for the other ranks to close too, before it aborts
 * @param shrinks whether NCCL's communicators are kept when they break, with nothing running on
 *     them any more, so that {@link NcclCommunicators#shrink} can go on with them; else they are
 *     aborted at once
 */
public record NcclOptions(CudaDevice device, long stagingBytes, Duration linger, boolean shrinks) {
  private static final long STAGING_BYTES = 2L << 30;

  /** 2 GiB for staging, 2 s for the others, no shrinking. */
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
