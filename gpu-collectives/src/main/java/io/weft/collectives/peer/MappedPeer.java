package io.weft.collectives.peer;

import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.IpcMemory;
import io.weft.device.cuda.PeerAccess;
import java.util.Optional;

/**
 * The memory of one rank as another rank accesses it.
 *
 * @param address of the memory
 * @param bytes of the memory
 * @param signals address of the signal words beside the memory
 * @param pid of the process that owns it
 * @param heldMemory keeps the memory mapped; null if no mapping is needed
 * @param heldSignals keeps the words mapped; null if no mapping is needed
 */
record MappedPeer(
    long address,
    long bytes,
    long signals,
    long pid,
    Optional<IpcMemory> heldMemory,
    Optional<IpcMemory> heldSignals,
    Optional<PeerAccess> access) {
  /**
   * Maps the memory that a rank offers.
   *
   * @throws RuntimeException if the device cannot reach it; nothing is mapped then
   */
  static MappedPeer of(CudaDevice device, PeerOffer offer) {
    if (offer.memory().pid() == ProcessHandle.current().pid()) {
      boolean isOther = !offer.memory().gpu().equals(device.description().uuid());
      return new MappedPeer(
          offer.address(),
          offer.memory().bytes(),
          offer.signalsAddress(),
          offer.memory().pid(),
          Optional.empty(),
          Optional.empty(),
          isOther ? Optional.of(PeerAccess.open(device, offer.memory().gpu())) : Optional.empty());
    }
    IpcMemory memory = IpcMemory.open(device, offer.memory());
    try {
      IpcMemory signals = IpcMemory.open(device, offer.signals());
      return new MappedPeer(
          memory.address(),
          offer.memory().bytes(),
          signals.address(),
          offer.memory().pid(),
          Optional.of(memory),
          Optional.of(signals),
          Optional.empty());
    } catch (RuntimeException e) {
      memory.close();
      throw e;
    }
  }

  /** Whether its process is alive. A dead process writes nothing any more. */
  boolean isAlive() {
    return ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false);
  }

  boolean isOfAnotherProcess() {
    return heldSignals.isPresent();
  }

  void unmapMemory() {
    heldMemory.ifPresent(IpcMemory::close);
  }

  void unmapSignals() {
    heldSignals.ifPresent(IpcMemory::close);
    access.ifPresent(PeerAccess::close);
  }

  void unmap() {
    unmapMemory();
    unmapSignals();
  }
}
