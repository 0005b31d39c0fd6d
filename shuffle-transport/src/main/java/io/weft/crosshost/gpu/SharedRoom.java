package io.weft.crosshost.gpu;

import io.weft.collectives.Communicator;
import io.weft.collectives.peer.PeerWindow;
import io.weft.device.Deadline;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A piece of this GPU's memory that the other end of a pair has mapped, and the other's that is
 * mapped here, for as long as the pair's wire lives: two slots each, of a wave. Its owner writes to
 * it and the other end only reads. One thread at a time.
 */
final class SharedRoom implements AutoCloseable {
  /** What goes through a slot at a time. */
  static final long WAVE_BYTES = 8L << 20;

  /** Of a room. */
  static final long BYTES = 2 * WAVE_BYTES;

  private static final Logger LOG = LoggerFactory.getLogger(SharedRoom.class);
  private static final Duration REST = Duration.ofSeconds(30);

  private final CudaStream stream;
  private final CudaMemory memory;
  private PeerWindow window;
  private int rank;

  private SharedRoom(CudaStream stream, CudaMemory memory) {
    this.stream = stream;
    this.memory = memory;
  }

  /**
   * Takes the memory, and a stream.
   *
   * @throws IllegalStateException when there is no room for it
   * @throws CudaException when the driver does not give it
   */
  static SharedRoom take(CudaDevice device, CudaMemoryPool pool) {
    CudaMemory memory = pool.take(BYTES);
    try {
      return new SharedRoom(
          CudaStream.open(device, "mapped transfers", Lane.Priority.HIGHEST), memory);
    } catch (RuntimeException e) {
      memory.close();
      throw e;
    }
  }

  /**
   * Has both ends map each other's.
   *
   * @throws io.weft.collectives.fault.CollectiveException of kind INVALID, at both ends, when one
   *     of them cannot; then nothing is mapped
   */
  void open(Communicator hosts, Deadline deadline) {
    rank = hosts.rank();
    window = PeerWindow.open(hosts, memory, stream, deadline);
  }

  CudaStream stream() {
    return stream;
  }

  /** Where a wave is written. */
  long own(int wave) {
    return slot(rank, wave);
  }

  /** Where a wave of the other end is read. */
  long others(int wave) {
    return slot(1 - rank, wave);
  }

  private long slot(int of, int wave) {
    return window.address(of) + wave % 2 * WAVE_BYTES;
  }

  /**
   * Reads the other's memory no more, and tells it so; the own stays until {@link #tryRelease}.
   *
   * @return whether the stream has come to rest, so that what it used may go
   */
  boolean depart() {
    try {
      if (stream.awaitRest(Deadline.after(REST))) {
        window.depart(Deadline.after(REST));
        memory.close();
        return true;
      }
      LOG.warn("{} does not rest: what it used, and what others have mapped, is kept", stream);
    } catch (CudaException e) {
      LOG.warn("{} failed: what others have mapped is kept", stream, e);
    }
    return false;
  }

  /** Whether the other end has departed too, or its process has ended, and all has gone back. */
  boolean tryRelease() {
    try {
      if (window.tryRelease(Deadline.after(REST))) {
        stream.close();
        return true;
      }
    } catch (CudaException e) {
      LOG.warn("{} failed: what others have mapped is kept", stream, e);
    }
    return false;
  }

  /** Gives back what was never mapped. */
  @Override
  public void close() {
    boolean unused = stream.close(REST);
    memory.close();
  }
}
