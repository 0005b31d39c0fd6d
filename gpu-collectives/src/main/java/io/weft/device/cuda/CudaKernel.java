package io.weft.device.cuda;

import io.weft.memory.Memory;

/**
 * A function that runs on a device. Thread-safe; each stream is used by one thread at a time.
 *
 * <p>Use on a lane: {@code lane.submit("hash", () -> kernel.launch(lane.stream(), blocks, threads,
 * arguments))}.
 */
public final class CudaKernel {
  /** The most threads of one block. */
  public static final int MAX_THREADS = 1024;

  private static final long BUFFER_POINTER = 1;
  private static final long BUFFER_SIZE = 2;

  private final CudaModule module;
  private final String name;
  private final long handle;
  private final int argumentBytes;

  CudaKernel(CudaModule module, String name, long handle, int argumentBytes) {
    this.module = module;
    this.name = name;
    this.handle = handle;
    this.argumentBytes = argumentBytes;
  }

  /** An empty struct of arguments for a launch. */
  public KernelArguments arguments() {
    return new KernelArguments(name, argumentBytes);
  }

  /**
   * Enqueues the kernel. Memory that its arguments point to must stay until a later mark is
   * reached; the arguments themselves are copied.
   *
   * @param blocks 1 or more
   * @param threads the threads of each block, 1 to {@value #MAX_THREADS}
   * @param arguments all arguments of the kernel
   */
  public void launch(CudaStream stream, int blocks, int threads, KernelArguments arguments) {
    requireFit(stream, blocks, threads, arguments);
    stream.device().use();
    try (NativeBlock block = NativeBlock.zeroed(Long.BYTES + (long) argumentBytes)) {
      long values = block.address() + Long.BYTES;
      Memory.putLong(block.address(), argumentBytes);
      arguments.copyTo(values);
      long[] extra = {BUFFER_POINTER, values, BUFFER_SIZE, block.address(), 0};
      int[] result = new int[1];
      module.whileOpen(
          () ->
              result[0] =
                  CudaFunctions.cuLaunchKernel(
                      handle, blocks, 1, 1, threads, 1, 1, 0, stream.handle(), 0, extra));
      CudaLibrary.check(
          result[0],
          "launching "
              + blocks
              + " blocks of "
              + threads
              + " threads of "
              + name
              + " on "
              + stream);
    }
  }

  private void requireFit(CudaStream stream, int blocks, int threads, KernelArguments arguments) {
    if (!stream.device().device().equals(module.device().device())) {
      throw new IllegalArgumentException(this + " is not of the device of " + stream);
    }
    if (blocks < 1 || threads < 1 || threads > MAX_THREADS) {
      throw new IllegalArgumentException(
          this + " cannot run in " + blocks + " blocks of " + threads + " threads");
    }
    if (arguments.left() != 0 || arguments.bytes() != argumentBytes) {
      throw new IllegalArgumentException(
          this + " takes " + argumentBytes + " bytes of arguments, not " + arguments);
    }
  }

  @Override
  public String toString() {
    return "kernel " + name + " of " + module;
  }
}
