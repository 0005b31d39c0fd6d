package io.weft.collectives.nccl;

import io.weft.device.cuda.CudaDevice;
import java.time.Duration;

/**
 * Options of the NCCL implementation beyond {@link io.weft.collectives.CommunicatorOptions}.
 *
 * @param device this rank's GPU, which stays open longer than its communicators
 * @param stagingBytes the limit of device memory for copies of host buffers, for each communicator
 * @param linger how long a close waits for the other ranks to close before it aborts
 * @param pairsOnly whether ranks only send and receive; then there is one communicator of NCCL, not
 *     two, and a {@link DeviceCommunicator#beside host communicator} for messages
 * @param maxBlocks the most blocks of a kernel of NCCL, the same on all ranks; 0 for NCCL's choice.
 *     NCCL_MAX_CTAS in the environment overrides it
 * @param arena memory for buffers of communicators, of the same device; null for communicators
 *     without their own buffers
 */
public record NcclOptions(
    CudaDevice device,
    long stagingBytes,
    Duration linger,
    boolean pairsOnly,
    int maxBlocks,
    DeviceArena arena) {
  private static final long STAGING_BYTES = 2L << 30;

  /** Options with 2 GiB for staging and a linger time of 2 s. */
  public static NcclOptions on(CudaDevice device) {
    return new NcclOptions(device, STAGING_BYTES, Duration.ofSeconds(2), false, 0, null);
  }

  public NcclOptions withLinger(Duration other) {
    return new NcclOptions(device, stagingBytes, other, pairsOnly, maxBlocks, arena);
  }

  /** Options for sends and receives only, with a limit of blocks. */
  public NcclOptions forPairs(int blocks) {
    return new NcclOptions(device, stagingBytes, linger, true, blocks, arena);
  }

  /** Options with memory for {@link io.weft.collectives.GpuCommunicator#onDevice}. */
  public NcclOptions withArena(DeviceArena other) {
    return new NcclOptions(device, stagingBytes, linger, pairsOnly, maxBlocks, other);
  }
}
