package io.weft.transfers.gpu;

import io.weft.collectives.Communicator;
import io.weft.collectives.nccl.PeerWindow;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * GPU memory that the two ends of a pair share while their wire is open. Each end owns one room,
 * which the other end has mapped, with two slots of one wave each. The owner writes and the other
 * end only reads. The ends also lend each other segments of their pools. Used by one thread at a
 * time.
 */
final class SharedRoom implements AutoCloseable {
  /** The size of a slot. */
  static final long WAVE_BYTES = 8L << 20;

  /** The size of a room. */
  static final long BYTES = 2 * WAVE_BYTES;

  private static final Logger LOG = LoggerFactory.getLogger(SharedRoom.class);
  private static final Duration REST = Duration.ofSeconds(30);

  private final CudaStream stream;
  private final CudaMemory memory;
  private final LentSegments segments;
  private final HostEvent left = new HostEvent("the other end's use of mapped memory");
  private PeerWindow window;
  private int rank;

  private SharedRoom(CudaStream stream, CudaMemory memory) {
    this.stream = stream;
    this.memory = memory;
    this.segments = new LentSegments(stream.device());
  }

  /**
   * Allocates the memory and a stream.
   *
   * @throws IllegalStateException if the pool is full
   * @throws CudaException if the driver fails
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
   * Maps the rooms at both ends.
   *
   * @throws io.weft.collectives.CollectiveException of kind INVALID, at both ends, if one of them
   *     cannot; then nothing is mapped
   */
  void open(Communicator hosts, Deadline deadline) {
    rank = hosts.rank();
    window = PeerWindow.open(hosts, memory, stream, deadline);
  }

  CudaStream stream() {
    return stream;
  }

  LentSegments segments() {
    return segments;
  }

  /** Completes when the other end does not read this end's memory any more. */
  Event left() {
    return left;
  }

  /** The address that this end writes a wave to. */
  long own(int wave) {
    return slot(rank, wave);
  }

  /** The address that this end reads the other end's wave from. */
  long others(int wave) {
    return slot(1 - rank, wave);
  }

  private long slot(int of, int wave) {
    return window.address(of) + wave % 2 * WAVE_BYTES;
  }

  /**
   * Unmaps the other's memory and tells the other end. The own memory stays until {@link
   * #tryRelease}.
   *
   * @return whether the stream is idle, so that its memory may be freed
   */
  boolean depart() {
    try {
      if (stream.awaitIdle(Deadline.after(REST))) {
        segments.unmapAll();
        window.depart(Deadline.after(REST));
        memory.close();
        return true;
      }
      LOG.warn(
          "{} does not become idle: its memory, and memory that others have mapped, is kept",
          stream);
    } catch (CudaException e) {
      LOG.warn("{} failed: memory that others have mapped is kept", stream, e);
    }
    return false;
  }

  /**
   * Frees the room if the other end has unmapped it or its process has ended.
   *
   * @param deadline for the device to tell
   * @return whether it is free
   * @throws CudaException if the device failed
   */
  boolean tryRelease(Deadline deadline) {
    if (!window.tryRelease(deadline)) {
      return false;
    }
    segments.endLoans();
    left.complete();
    stream.close();
    return true;
  }

  /** Frees a room that was never mapped. */
  @Override
  public void close() {
    boolean unused = stream.close(REST);
    memory.close();
  }

  /**
   * Shared rooms that this end has left and the other end may still have mapped. They are polled
   * when a room is opened or left, and with {@link io.weft.transfers.ReceiveMemory#reclaim}.
   * Thread-safe; no lock is held during calls to the driver.
   */
  static final class ReleasedRooms {
    private static final long POLL_NANOS = 1_000_000;

    /** The limit of a poll of all rooms: a device that hangs must not delay other checks. */
    private static final Duration POLL_TIMEOUT = Duration.ofMillis(100);

    private final List<SharedRoom> rooms = new ArrayList<>();

    /** The number of rooms that stay for good, because their device failed. */
    private int lost;

    /** The number of rooms that a thread polls now. */
    private int inHand;

    /** Adds a room and takes ownership. */
    void add(SharedRoom room) {
      synchronized (this) {
        rooms.add(room);
      }
      int unused = poll();
    }

    /**
     * Frees the rooms that are not mapped any more. Returns the number of remaining rooms, with
     * those whose device failed, which are not polled again.
     */
    int poll() {
      List<SharedRoom> polled;
      synchronized (this) {
        polled = new ArrayList<>(rooms);
        rooms.clear();
        inHand += polled.size();
      }
      int taken = polled.size();
      Deadline deadline = Deadline.after(POLL_TIMEOUT);
      polled.removeIf(room -> ends(room, deadline));
      synchronized (this) {
        inHand -= taken;
        rooms.addAll(polled);
        return rooms.size() + inHand + lost;
      }
    }

    private boolean ends(SharedRoom room, Deadline deadline) {
      try {
        return room.tryRelease(deadline);
      } catch (CudaException e) {
        LOG.warn("{} failed: memory that others have mapped is kept", room.stream, e);
        synchronized (this) {
          lost++;
        }
        return true;
      }
    }

    private synchronized boolean hasLost(int left) {
      return left == lost;
    }

    /**
     * Polls until no room remains, but those whose device failed, or the deadline expires. Returns
     * the number of remaining rooms.
     */
    int awaitAll(Deadline deadline) {
      int left = poll();
      while (!hasLost(left) && !deadline.expired()) {
        LockSupport.parkNanos(POLL_NANOS);
        left = poll();
      }
      return left;
    }
  }
}
