package io.weft.shuffle.device;

import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;

/** Chooses the number of threads for kernels of tables. Stateless. */
final class KernelLaunches {
  /** The number of values that one block sorts or sums. */
  static final int TILE = 4096;

  static final int WARP = 32;

  private static final int THREADS = 256;
  private static final int MAX_BLOCKS = 1 << 13;

  private KernelLaunches() {}

  /**
   * Launches a thread for each item, or fewer threads if there are many items; no launch without
   * items.
   */
  static void forEach(CudaStream stream, CudaKernel kernel, long items, KernelArguments arguments) {
    if (items > 0) {
      long blocks = Math.min((items + THREADS - 1) / THREADS, MAX_BLOCKS);
      kernel.launch(stream, (int) blocks, THREADS, arguments);
    }
  }

  static long tiles(long items) {
    return (items + TILE - 1) / TILE;
  }

  /** Launches a block for each tile of items; no launch without items. */
  static void perTile(CudaStream stream, CudaKernel kernel, long items, KernelArguments arguments) {
    perTile(stream, kernel, THREADS, items, arguments);
  }

  /** Launches a block of this many threads for each tile of items; no launch without items. */
  static void perTile(
      CudaStream stream, CudaKernel kernel, int threads, long items, KernelArguments arguments) {
    if (items > 0) {
      kernel.launch(stream, Math.toIntExact(tiles(items)), threads, arguments);
    }
  }
}
