package io.weft.table;

import io.weft.device.Event;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;

/**
 * The kernels of {@code src/main/cuda/concat.cu} on one device, with their arguments. Callers must
 * check addresses. Thread-safe; a stream is used by one thread at a time.
 */
final class ConcatKernels implements AutoCloseable {
  /** Bytes that a warp copies at a time. */
  static final long CHUNK = 4096;

  private static final int BYTES = 72;

  private final CudaModule module;
  private final CudaKernel validity;
  private final CudaKernel offsets;
  private final CudaKernel bytes;

  private ConcatKernels(CudaModule module) {
    this.module = module;
    this.validity = module.kernel("weft_concat_validity", BYTES);
    this.offsets = module.kernel("weft_concat_offsets", BYTES);
    this.bytes = module.kernel("weft_concat_bytes", BYTES);
  }

  static ConcatKernels load(CudaDevice device) {
    CudaModule module = CudaModule.load(device, "concat");
    try {
      return new ConcatKernels(module);
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  /**
   * Some of the tables, all with rows.
   *
   * @param run address of the result
   * @param firsts the first row of each table, then the end of the last
   * @param pieces of these tables
   * @param count the number of these tables
   * @param columns of each
   */
  record Tables(long run, long firsts, long pieces, long count, long columns) {
    private KernelArguments arguments(CudaKernel kernel, long sections, long sectionCount) {
      KernelArguments arguments = kernel.arguments().putLong(run).putLong(firsts).putLong(pieces);
      return arguments.putLong(sections).putLong(count).putLong(columns).putLong(sectionCount);
    }
  }

  /**
   * Shifts validity bits.
   *
   * @param sections of the result's columns that have validity
   * @param words that hold bits of rows of these tables
   */
  void validity(CudaStream stream, Tables tables, long sections, long count, long words) {
    KernelArguments arguments = tables.arguments(validity, sections, count).fill();
    Launches.forEach(stream, validity, count * words, arguments);
  }

  /**
   * Adjusts offsets to the result.
   *
   * @param sections of the columns that have offsets
   * @param rows of these tables
   */
  void offsets(CudaStream stream, Tables tables, long sections, long count, long rows) {
    KernelArguments arguments = tables.arguments(offsets, sections, count).fill();
    Launches.forEach(stream, offsets, count * (rows + 1), arguments);
  }

  /** Copies values and the bytes of strings. */
  void bytes(CudaStream stream, Tables tables, long firstChunk, long endChunk) {
    KernelArguments arguments = tables.arguments(bytes, 0, 0).putLong(firstChunk).putLong(endChunk);
    Launches.forEach(stream, bytes, (endChunk - firstChunk) * Launches.WARP, arguments);
  }

  /** Keeps the kernels loaded until the event has ended, even if this is closed earlier. */
  void usedUntil(Event event) {
    module.usedUntil(event);
  }

  /** Closes the kernels; none is launched any more. */
  @Override
  public void close() {
    module.close();
  }
}
