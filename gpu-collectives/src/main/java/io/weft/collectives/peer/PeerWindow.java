package io.weft.collectives.peer;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.IpcExport;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Memory of each rank that all ranks access. Any rank may write to it until that rank has ended it.
 * So a rank that has ended it keeps its own memory until all others have ended it too, or their
 * processes are gone. Confined to the thread of its stream.
 */
public final class PeerWindow implements ReachableMemory {
  private static final Logger LOG = LoggerFactory.getLogger(PeerWindow.class);
  private static final long POLL_NANOS = 200_000;

  private final int rank;
  private final CudaMemory memory;
  private final CudaStream stream;
  private final PeerSignals signals;
  private final List<IpcExport> exports;
  private final List<MappedPeer> peers;
  private boolean unmapped;

  /** Whether the others know that this rank has departed. */
  private boolean departureSent;

  private boolean released;

  PeerWindow(
      int rank,
      CudaMemory memory,
      CudaStream stream,
      PeerSignals signals,
      List<IpcExport> exports,
      List<MappedPeer> peers) {
    this.rank = rank;
    this.memory = memory;
    this.stream = stream;
    this.signals = signals;
    this.exports = exports;
    this.peers = peers;
  }

  /**
   * Opens a window, on all ranks together.
   *
   * @param hosts the host communicator of the ranks
   * @param memory of this rank's GPU and of {@link io.weft.device.cuda.CudaMemoryPool.Kind#DEVICE};
   *     sizes may differ between ranks
   * @param stream must be idle
   * @throws CollectiveException of kind INVALID, on all ranks, if one cannot access the memory of
   *     another
   */
  public static PeerWindow open(
      Communicator hosts, CudaMemory memory, CudaStream stream, Deadline deadline) {
    return new WindowOpening(hosts, memory, stream, deadline).run();
  }

  @Override
  public CudaMemory memory() {
    return memory;
  }

  @Override
  public boolean covers(TypedBuffer buffer) {
    MappedPeer own = peers.get(rank);
    return buffer.address() >= own.address()
        && buffer.address() + buffer.bytes() <= own.address() + own.bytes();
  }

  @Override
  public long offset(TypedBuffer buffer) {
    return buffer.address() - peers.get(rank).address();
  }

  /** The address of a rank's memory for this rank's device, until this rank departs. */
  public long address(int of) {
    return peers.get(of).address();
  }

  MappedPeer peer(int of) {
    return peers.get(of);
  }

  int rank() {
    return rank;
  }

  /** The number of ranks. */
  public int nranks() {
    return peers.size();
  }

  @Override
  public void close(Communicator hosts) {
    hosts.barrier();
    unmapped = true;
    peers.forEach(MappedPeer::unmap);
    hosts.barrier();
    exports.forEach(IpcExport::close);
    signals.close();
  }

  /** Tells the others through their memory. */
  @Override
  public boolean leave(Deadline deadline) {
    if (unmapped) {
      return false;
    }
    try {
      depart(deadline);
      while (!tryRelease(deadline)) {
        if (!departureSent || deadline.expired()) {
          return false;
        }
        LockSupport.parkNanos(POLL_NANOS);
      }
      return true;
    } catch (CudaException e) {
      LOG.warn("The shared memory of rank {} is kept, because its device failed", rank, e);
      return false;
    }
  }

  /**
   * Ends the window on this rank only, whose stream must be idle. It does not wait for the others:
   * it tells them through their memory and then unmaps that memory. This rank's own memory stays
   * until {@link #tryRelease} returns true. It stays for good if the device does not tell the
   * others by the deadline.
   *
   * @throws CudaException if the device failed; the memory stays for good then
   */
  public void depart(Deadline deadline) {
    if (unmapped) {
      return;
    }
    unmapped = true;
    peers.forEach(MappedPeer::unmapMemory);
    for (MappedPeer peer : peers) {
      if (peer.isAlive()) {
        signals.sayGone(rank, peer.signals());
      }
    }
    if (stream.awaitRest(deadline)) {
      peers.forEach(MappedPeer::unmapSignals);
      departureSent = true;
    }
  }

  /**
   * Frees this rank's memory if this rank has departed and the others have departed too or their
   * processes are gone.
   *
   * @param deadline for the device to read the messages of the others
   * @return whether the memory is free, by this call or an earlier one
   * @throws CudaException if the device failed
   */
  public boolean tryRelease(Deadline deadline) {
    if (!released && departureSent && signals.read(deadline) && areAllGone()) {
      release();
      released = true;
    }
    return released;
  }

  /** Other processes may still have the signal words mapped and cannot report the end of that. */
  private void release() {
    exports.get(0).close();
    if (peers.stream().noneMatch(peer -> peer.isOfAnotherProcess() && peer.isAlive())) {
      exports.get(1).close();
      signals.close();
    }
  }

  private boolean areAllGone() {
    for (int peer = 0; peer < peers.size(); peer++) {
      if (!signals.isGone(peer) && peers.get(peer).isAlive()) {
        return false;
      }
    }
    return true;
  }
}
