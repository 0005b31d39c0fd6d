package io.weft.collectives.nccl;

import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;
import java.time.Duration;

/**
 * Kernels by which a rank writes a block once, into the memory of all ranks. Confined to the thread
 * of its stream. The {@link PeerExchange} of the barriers stops these kernels and reports their
 * failures.
 */
final class MulticastExchange implements AutoCloseable {
  private static final int WRITE_BYTES = 5 * 8;
  private static final int ENDS_BYTES = 4 * 8 + 2 * 4;
  private static final int THREADS = 256;
  private static final int MAX_BLOCKS = 512;

  /** Equals UNIT and SLOT_BYTES of multicast.cu. */
  private static final int UNIT = 16;

  private static final int SLOT_BYTES = 2 * UNIT;

  /** Room for one slot for each possible rank. */
  static final long ENDS_ROOM = (long) SLOT_BYTES * PeerSignals.MAX_RANKS;

  private final CudaStream stream;
  private final PeerExchange barriers;
  private final CudaModule module;
  private final CudaKernel write;
  private final CudaKernel ends;

  /**
   * Loads the kernels.
   *
   * @param stream of a device of compute capability 9.0 or newer
   * @param barriers on the same stream, and not this object's to close
   */
  public MulticastExchange(CudaStream stream, PeerExchange barriers) {
    this.stream = stream;
    this.barriers = barriers;
    this.module = CudaModule.load(stream.device(), "multicast");
    try {
      this.write = module.kernel("weft_multicast_write", WRITE_BYTES);
      this.ends = module.kernel("weft_multicast_ends", ENDS_BYTES);
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  /**
   * Enqueues an exchange: a barrier, this rank's block if it has one, a barrier, and the last bytes
   * that do not fill a whole unit.
   *
   * @param timeout how long the device waits for a rank in each barrier
   */
  public void enqueue(MulticastWindow window, MulticastBlocks blocks, Duration timeout) {
    barriers.enqueueBarrier(window.barrierWindow(), timeout);
    if (blocks.has(window.rank())) {
      enqueueWrite(window, blocks);
    }
    barriers.enqueueBarrier(window.barrierWindow(), timeout);
    if ((blocks.offset() | blocks.blockBytes()) % UNIT != 0) {
      enqueueEnds(window, blocks);
    }
  }

  private void enqueueWrite(MulticastWindow window, MulticastBlocks blocks) {
    int rank = window.rank();
    KernelArguments arguments = write.arguments();
    arguments.putLong(window.multicastAddress() + blocks.offset(rank));
    arguments.putLong(window.multicastEnds() + (long) rank * SLOT_BYTES);
    arguments.putLong(blocks.send()).putLong(blocks.blockBytes()).putLong(window.signals());
    long items = blocks.blockBytes() / UNIT;
    write.launch(stream, gridFor(items), THREADS, arguments);
  }

  private void enqueueEnds(MulticastWindow window, MulticastBlocks blocks) {
    KernelArguments arguments = ends.arguments();
    arguments.putLong(window.ends()).putLong(window.address() + blocks.offset());
    arguments.putLong(blocks.blockBytes()).putLong(window.signals());
    arguments.putInt(blocks.first()).putInt(blocks.count());
    ends.launch(stream, gridFor((long) blocks.count() * SLOT_BYTES), THREADS, arguments);
  }

  private static int gridFor(long items) {
    return (int) Math.min(MAX_BLOCKS, Math.max(1, (items + THREADS - 1) / THREADS));
  }

  /** Unloads the kernels. The device must be idle. */
  @Override
  public void close() {
    module.close();
  }

  /**
   * Consecutive blocks of one size in the memory of every rank. One rank writes each block for all.
   *
   * @param send device address of this rank's block; any value if no block is its own
   * @param blockBytes 1 or more
   * @param offset where the first block begins, in bytes from the start of the memory
   * @param first the rank of the first block
   * @param count 1 or more; the following blocks belong to the following ranks
   */
  record MulticastBlocks(long send, long blockBytes, long offset, int first, int count) {
    boolean has(int rank) {
      return rank >= first && rank < first + count;
    }

    /** The offset of a rank's block. */
    long offset(int rank) {
      return offset + (rank - first) * blockBytes;
    }
  }
}
