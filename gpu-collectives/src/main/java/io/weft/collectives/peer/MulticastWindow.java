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
 * Memory of as many bytes on each rank that one write of any rank reaches, all at the same place.
 * As with any window a rank that ended it keeps its own memory until all the others have, or their
 * processes are gone. Confined to the thread of its stream.
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
   * @param hosts the hosts' communicator of the ranks, of one host and each on a GPU of its own
   * @param memory of this rank's GPU and of {@link io.weft.device.cuda.VirtualMemory#forMulticast},
   *     the first of a segment; as many bytes on each rank
   * @param stream at rest
   * @param prepare what has to be loaded before, where multicast is possible
   * @throws CollectiveException of kind INVALID, on all ranks, when one has no multicast
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

  /** The window of the barriers, over which ranks also part. */
  public PeerWindow lobby() {
    return lobby;
  }

  int rank() {
    return lobby.rank();
  }

  long address() {
    return address;
  }

  /** Of this rank's words, on its device. */
  long signals() {
    return lobby.peer(lobby.rank()).signals();
  }

  /** Where a write to the memory of all begins. */
  long multicastAddress() {
    return multicastAddress;
  }

  /** The slots of all ranks, in this rank's memory. */
  long ends() {
    return scratch.ends().address();
  }

  /** Where a write to the slots of all begins. */
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

  /**
   * No device writes to this rank's memory any more, so that it goes back as soon as it is free.
   */
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
