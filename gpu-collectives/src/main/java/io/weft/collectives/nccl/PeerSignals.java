package io.weft.collectives.nccl;

import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.memory.Memory;

/**
 * The signal words that a rank shares beside its memory, and pinned memory to read them. The words
 * are one for each rank, which start as zero, and one that is 1. Confined to the thread of its
 * stream.
 */
final class PeerSignals implements AutoCloseable {
  /** The limit of ranks. */
  static final int MAX_RANKS = 16;

  private static final long ONE = 4L * MAX_RANKS;
  private static final long BYTES = ONE + 4;

  private final CudaStream stream;
  private final CudaMemoryPool devicePool;
  private final CudaMemoryPool pinnedPool;
  private final CudaMemory words;
  private final CudaMemory copy;

  /** Whether a read is under way. */
  private boolean reading;

  private PeerSignals(CudaStream stream) {
    CudaDevice device = stream.device();
    this.stream = stream;
    this.devicePool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 512);
    this.pinnedPool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 512);
    this.words = devicePool.take(BYTES);
    this.copy = pinnedPool.take(BYTES);
  }

  /** Returns when the words on the device are initialized. */
  static PeerSignals open(CudaStream stream, Deadline deadline) {
    PeerSignals signals = new PeerSignals(stream);
    Memory.setMemory(signals.copy.address(), BYTES, (byte) 0);
    Memory.putInt(signals.copy.address() + ONE, 1);
    stream.copyToDevice(signals.words.address(), signals.copy.address(), BYTES);
    if (!stream.awaitIdle(deadline)) {
      throw new IllegalStateException(stream + " did not write 100 bytes within " + deadline);
    }
    return signals;
  }

  CudaMemory words() {
    return words;
  }

  /** Enqueues the message that this rank writes to a peer's memory no more. */
  void signalGone(int rank, long peerSignals) {
    stream.copyOnDevice(peerSignals + 4L * rank, words.address() + ONE, 4);
  }

  /** Whether a rank has reported its departure, as of the last {@link #read}. */
  boolean isGone(int rank) {
    return Memory.getInt(copy.address() + 4L * rank) != 0;
  }

  /**
   * Reads the messages of the other ranks. Returns false after the deadline; the next call then
   * waits for the same read, so that a device that hangs does not collect reads.
   */
  boolean read(Deadline deadline) {
    if (!reading) {
      stream.copyToHost(copy.address(), words.address(), BYTES);
      reading = true;
    }
    reading = !stream.awaitIdle(deadline);
    return !reading;
  }

  /** Frees the memory, which no rank writes to any more. */
  @Override
  public void close() {
    copy.close();
    pinnedPool.close();
    words.close();
    devicePool.close();
  }
}
