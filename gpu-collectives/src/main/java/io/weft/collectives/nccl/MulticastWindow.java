package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.MulticastObject;
import io.weft.device.cuda.VirtualMemory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Memory of equal size on each rank, where one write of any rank reaches the same place on all. As
 * with any window, a rank that has ended it keeps its own memory until all others have ended it
 * too, or their processes have died. Confined to the thread of its stream.
 */
final class MulticastWindow implements ReachableMemory {
  private static final Logger LOG = LoggerFactory.getLogger(MulticastWindow.class);

  private final CudaMemory memory;
  private final HostEvent lease;
  private final PeerWindow barrierWindow;
  private final MulticastScratch scratch;
  private final MulticastObject object;
  private final long address;
  private final long multicastAddress;
  private final long endsOffset;
  private boolean released;

  MulticastWindow(
      CudaMemory memory,
      HostEvent lease,
      PeerWindow lobby,
      MulticastScratch scratch,
      MulticastObject object,
      long multicastAddress,
      long endsOffset) {
    this.memory = memory;
    this.lease = lease;
    this.barrierWindow = lobby;
    this.scratch = scratch;
    this.object = object;
    this.address = memory.address();
    this.multicastAddress = multicastAddress;
    this.endsOffset = endsOffset;
  }

  /**
   * Opens a window, on all ranks together.
   *
   * @param hosts the host communicator of the ranks, which are on one host and each on its own GPU
   * @param memory of this rank's GPU and of {@link io.weft.device.cuda.VirtualMemory#forMulticast},
   *     the first of a segment; of equal size on each rank
   * @param stream must be idle
   * @param prepare loads what is needed first, if multicast is possible
   * @throws CollectiveException of kind INVALID, on all ranks, if one has no multicast
   */
  public static MulticastWindow open(
      Communicator hosts,
      CudaMemory memory,
      CudaStream stream,
      Deadline deadline,
      Runnable prepare) {
    return new MulticastOpening(hosts, memory, stream, deadline, prepare).run();
  }

  @Override
  public CudaMemory memory() {
    return memory;
  }

  @Override
  public boolean covers(TypedBuffer buffer) {
    return buffer.address() >= address
        && buffer.address() + buffer.bytes() <= address + memory.bytes();
  }

  @Override
  public long offset(TypedBuffer buffer) {
    return buffer.address() - address;
  }

  /** The window of the barriers, through which ranks also end together. */
  public PeerWindow barrierWindow() {
    return barrierWindow;
  }

  int rank() {
    return barrierWindow.rank();
  }

  long address() {
    return address;
  }

  /** Device address of this rank's signal words. */
  long signals() {
    return barrierWindow.peer(barrierWindow.rank()).signals();
  }

  /** The address where a write to the memory of all ranks begins. */
  long multicastAddress() {
    return multicastAddress;
  }

  /** The slots of all ranks, in this rank's memory. */
  long ends() {
    return scratch.ends().address();
  }

  /** The address where a write to the slots of all ranks begins. */
  long multicastEnds() {
    return multicastAddress + endsOffset;
  }

  @Override
  public void close(Communicator hosts) {
    hosts.barrier();
    object.unmap();
    hosts.barrier();
    endObject();
    barrierWindow.close(hosts);
    release();
  }

  @Override
  public boolean closeLocally(Deadline deadline) {
    if (released) {
      return true;
    }
    try {
      object.unmap();
      if (!barrierWindow.closeLocally(deadline)) {
        return false;
      }
      endObject();
      release();
      return true;
    } catch (CudaException e) {
      LOG.warn("Multicast memory of rank {} is kept, as its device failed", rank(), e);
      return false;
    }
  }

  /** Ends the object. No device writes to this rank's memory any more, so it can be freed. */
  private void endObject() {
    object.close();
    scratch.closeEnds();
    lease.complete();
  }

  private void release() {
    released = true;
    scratch.closeBarrierMemory();
  }

  /**
   * Device memory that a multicast window needs beside the caller's: a few bytes for the barriers,
   * and bindable memory with the slots for bytes that do not fill a whole unit. Confined to the
   * thread of the window.
   */
  static final class MulticastScratch {
    private static final int LOBBY_BYTES = 512;

    private final CudaMemoryPool lobbyPool;
    private final CudaMemoryPool endsPool;
    private final CudaMemory barrierMemory;
    private final CudaMemory ends;

    MulticastScratch(CudaDevice device) {
      VirtualMemory source = VirtualMemory.forMulticast(device);
      this.lobbyPool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, LOBBY_BYTES);
      this.endsPool = CudaMemoryPool.open(device, source, source.granularity());
      this.barrierMemory = lobbyPool.take(LOBBY_BYTES);
      try {
        this.ends = endsPool.take(MulticastExchange.ENDS_ROOM);
      } catch (RuntimeException e) {
        closeBarrierMemory();
        endsPool.close();
        throw e;
      }
    }

    CudaMemory barrierMemory() {
      return barrierMemory;
    }

    CudaMemory ends() {
      return ends;
    }

    /** Frees the slots, which are no longer bound. */
    void closeEnds() {
      ends.close();
      endsPool.close();
    }

    /** Frees the memory of the barriers, which no rank has mapped any more. */
    void closeBarrierMemory() {
      barrierMemory.close();
      lobbyPool.close();
    }
  }
}
