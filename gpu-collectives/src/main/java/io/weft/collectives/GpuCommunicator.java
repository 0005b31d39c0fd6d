package io.weft.collectives;

/**
 * A communicator whose ranks are GPUs, one for each rank. Its operations run on memory of the
 * rank's GPU by NCCL. Buffers in host memory work too, but are copied through the GPU.
 *
 * <p>An operation does not wait for other work of the GPU: end what writes or reads its buffers
 * before. Otherwise it is a {@link Communicator}, also in its failures and deadlines. {@link
 * #record} makes a CUDA graph where all buffers are in GPU memory.
 */
public interface GpuCommunicator extends Communicator {
  /**
   * Whether it was created with memory for buffers, the same on all ranks; else {@link #onDevice}
   * refuses.
   */
  boolean hasBuffers();

  /**
   * Allocates zeros of the same type and number in the memory of every rank's GPU. Collective: all
   * ranks ask for the same buffers in the same order. The memory is a window of NCCL where NCCL has
   * windows, so operations in it bypass NCCL's own buffers.
   *
   * @param count elements, 0 or more
   * @return open until it is closed, at most until the communicator is closed
   * @throws CollectiveException on all ranks, and the communicator stays usable: of kind MISMATCH
   *     if ranks ask for different buffers, of kind INVALID if the count is not allowed or a rank
   *     has no room, naming the ranks
   */
  GpuBuffer onDevice(DataType type, long count);
}
