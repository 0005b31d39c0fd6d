package io.weft.collectives;

import java.util.Optional;

/**
 * The same number of elements in the memory of every rank's GPU, made by {@link
 * GpuCommunicator#onDevice}. Thread-safe for different elements.
 */
public interface GpuBuffer extends AutoCloseable {
  /**
   * This rank's elements, zeros at first, in GPU memory: their address is one of the GPU's primary
   * context, which the host must not read. Once the buffer is closed or the task has ended, another
   * buffer may have the bytes. So end all work of the GPU that uses an address before.
   */
  TypedBuffer elements();

  /** Why NCCL uses its own buffers for operations on these elements; empty if it does not. */
  Optional<String> whyNoWindow();

  /**
   * Copies elements into this rank's part, in the order of the communicator's operations. Other
   * ranks take no part.
   *
   * @param source of the same element type, in memory of the host or of this GPU
   * @param first element of this buffer that is written
   * @throws IndexOutOfBoundsException if the elements are out of range
   * @throws CollectiveException of kind INVALID if a buffer is closed or the types differ; other
   *     kinds break the communicator
   */
  void write(TypedBuffer source, long first);

  /** Copies elements out of this rank's part; otherwise as {@link #write}. */
  void read(TypedBuffer target, long first);

  /**
   * Closes the buffer on this rank; not collective. Its bytes are used again once all ranks have
   * closed it and its last use has ended. The end of the communicator closes it too.
   */
  @Override
  void close();
}
