package io.weft.collectives.peer;

import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.Memory;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Words in pinned memory. The host uses them to end a kernel, and kernels use them to report
 * failures, as struct report of peers.cu. Any thread may call {@link #stop}.
 */
final class PeerReport implements AutoCloseable {
  private static final long ENTRY = 8;
  private static final long SILENT = 12;
  private static final long BYTES = SILENT + 4L * PeerSignals.MOST_RANKS;

  private final CudaMemoryPool pool;
  private final CudaMemory words;

  PeerReport(CudaDevice device) {
    this.pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 512);
    this.words = pool.take(BYTES);
    Memory.setMemory(words.address(), BYTES, (byte) 0);
  }

  long address() {
    return words.address();
  }

  /** Makes waiting kernels give up. */
  void stop() {
    Memory.putInt(words.address(), 1);
  }

  /** The ranks that did not reach a barrier in time. */
  List<Integer> silent() {
    return IntStream.range(0, PeerSignals.MOST_RANKS)
        .filter(rank -> Memory.getInt(words.address() + SILENT + 4L * rank) != 0)
        .boxed()
        .toList();
  }

  /** The number of an update that is out of range; -1 if all are valid. */
  int badEntry() {
    return Memory.getInt(words.address() + ENTRY) - 1;
  }

  @Override
  public void close() {
    words.close();
    pool.close();
  }
}
