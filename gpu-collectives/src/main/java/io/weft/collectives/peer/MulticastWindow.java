package io.weft.collectives.peer;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.device.Deadline;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.MulticastObject;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Memory of equal size on each rank, where one write of any rank reaches the same place on all. As
 * with any window, a rank that has ended it keeps its own memory until all others have ended it
 * too, or their processes are gone. Confined to the thread of its stream.
 */
public final class MulticastWindow implements ReachableMemory {
  private static final Logger LOG = LoggerFactory.getLogger(MulticastWindow.class);

  private final CudaMemory memory;
  private final HostEvent lease;
  private final PeerWindow lobby;
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
    this.lobby = lobby;
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
  public PeerWindow lobby() {
    return lobby;
  }

  int rank() {
    return lobby.rank();
  }

  long address() {
    return address;
  }

  /** Device address of this rank's signal words. */
  long signals() {
    return lobby.peer(lobby.rank()).signals();
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
    lobby.close(hosts);
    release();
  }

  @Override
  public boolean leave(Deadline deadline) {
    if (released) {
      return true;
    }
    try {
      object.unmap();
      if (!lobby.leave(deadline)) {
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
    scratch.closeLobby();
  }
}
