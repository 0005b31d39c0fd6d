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
 */
public record NcclOptions(CudaDevice device, long stagingBytes, Duration linger) {
  private static final long STAGING_BYTES = 2L << 30;

  /** 2 GiB for staging, 2 s for the others. */
  public static NcclOptions on(CudaDevice device) {
    return new NcclOptions(device, STAGING_BYTES, Duration.ofSeconds(2));
  }

  public NcclOptions withLinger(Duration other) {
    return new NcclOptions(device, stagingBytes, other);
  }
}
