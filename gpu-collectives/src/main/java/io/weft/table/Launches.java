package io.weft.table;

import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;

/** How many threads kernels of tables get. Stateless. */
final class Launches {
  /** Values of one block that sorts or sums up. */
  static final int TILE = 4096;

  static final int WARP = 32;

  private static final int THREADS = 256;
  private static final int MOST_BLOCKS = 1 << 13;

  private Launches() {}

  /** A thread for each item, or for several where there are many; nothing for none. */
  static void forEach(CudaStream stream, CudaKernel kernel, long items, KernelArguments arguments) {
    if (items > 0) {
      long blocks = Math.min((items + THREADS - 1) / THREADS, MOST_BLOCKS);
      kernel.launch(stream, (int) blocks, THREADS, arguments);
    }
  }

  static long tiles(long items) {
    return (items + TILE - 1) / TILE;
  }

  /** A block for each tile of items; nothing for none. */
  static void perTile(CudaStream stream, CudaKernel kernel, long items, KernelArguments arguments) {
    if (items > 0) {
      kernel.launch(stream, Math.toIntExact(tiles(items)), THREADS, arguments);
    }
  }
}
