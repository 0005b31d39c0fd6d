package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.IpcExport;
import io.weft.device.cuda.IpcHandle;
import io.weft.device.cuda.IpcMemory;
import io.weft.device.cuda.PeerAccess;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Memory of each rank that all ranks access. A rank may write to it until it ends the window. So a
 * rank that ended the window keeps its own memory until all others ended it too, or their processes
 * have died. Confined to the thread of its stream.
 */
public final class PeerWindow {
  private final int rank;
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
      CudaStream stream,
      PeerSignals signals,
      List<IpcExport> exports,
      List<MappedPeer> peers) {
    this.rank = rank;
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

  /** The address of a rank's memory for this rank's device, until this rank departs. */
  public long address(int of) {
    return peers.get(of).address();
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
        signals.signalGone(rank, peer.signals());
      }
    }
    if (stream.awaitIdle(deadline)) {
      peers.forEach(MappedPeer::unmapSignals);
      departureSent = true;
    }
  }

  /**
   * Frees this rank's memory if this rank has departed and the others have departed too or their
   * processes have ended.
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

  /**
   * The message with which a rank offers its memory to the others.
   *
   * <pre> long address | long address of the signals | int length | handle | handle of the signals
   * </pre>
   *
   * @param memory for other processes
   * @param address in its own process
   * @param signals beside the memory
   * @param signalsAddress in its own process
   */
  record PeerOffer(IpcHandle memory, long address, IpcHandle signals, long signalsAddress) {
    byte[] encode() {
      byte[] first = memory.encode();
      byte[] second = signals.encode();
      return ByteBuffer.allocate(2 * Long.BYTES + Integer.BYTES + first.length + second.length)
          .putLong(address)
          .putLong(signalsAddress)
          .putInt(first.length)
          .put(first)
          .put(second)
          .array();
    }

    static PeerOffer decode(byte[] message) {
      ByteBuffer in = ByteBuffer.wrap(message);
      long address = in.getLong();
      long signalsAddress = in.getLong();
      byte[] first = new byte[in.getInt()];
      in.get(first);
      byte[] second = new byte[in.remaining()];
      in.get(second);
      return new PeerOffer(
          IpcHandle.decode(first), address, IpcHandle.decode(second), signalsAddress);
    }
  }

  /**
   * Opens a window. Every rank offers its memory, then maps the memory that the others offer. A
   * failure on one rank fails all ranks. Confined to the thread of its stream.
   */
  static final class WindowOpening {
    private final Communicator hosts;
    private final CudaMemory memory;
    private final CudaStream stream;
    private final Deadline deadline;
    private final BootstrapRounds rounds;
    private final List<IpcExport> exports = new ArrayList<>();
    private final List<MappedPeer> peers = new ArrayList<>();
    private PeerSignals signals;

    /** Whether other ranks may have mapped this rank's memory. */
    private boolean areOffered;

    WindowOpening(Communicator hosts, CudaMemory memory, CudaStream stream, Deadline deadline) {
      this.hosts = hosts;
      this.memory = memory;
      this.stream = stream;
      this.deadline = deadline;
      this.rounds = new BootstrapRounds(new CommunicatorBootstrap(hosts), deadline);
    }

    PeerWindow run() {
      try {
        List<byte[]> offers = rounds.exchange("peeroffer", () -> named(this::offer).encode());
        areOffered = true;
        rounds.barrier("peermapped", () -> named(() -> map(offers)));
        return new PeerWindow(hosts.rank(), stream, signals, exports, peers);
      } catch (RuntimeException | Error e) {
        giveUp(e);
        throw e;
      }
    }

    private PeerOffer offer() {
      if (hosts.nranks() > PeerSignals.MAX_RANKS || !hosts.topology().isOneHost()) {
        throw new IllegalArgumentException(
            "the %d ranks must be at most %d and on one host"
                .formatted(hosts.nranks(), PeerSignals.MAX_RANKS));
      }
      if (!memory.device().device().equals(stream.device().device())) {
        throw new IllegalArgumentException(
            "the memory is of " + memory.device() + ", the rank on " + stream.device());
      }
      IpcExport export = IpcExport.of(memory);
      exports.add(export);
      signals = PeerSignals.open(stream, deadline);
      IpcExport exported = IpcExport.of(signals.words());
      exports.add(exported);
      return new PeerOffer(
          export.handle(), memory.address(), exported.handle(), signals.words().address());
    }

    private Void map(List<byte[]> offers) {
      for (byte[] offer : offers) {
        peers.add(MappedPeer.of(stream.device(), PeerOffer.decode(offer)));
      }
      return null;
    }

    private <T> T named(Supplier<T> part) {
      return RankRefusal.named(hosts.rank(), "share memory", part);
    }

    /**
     * Undoes the opening. Memory that others may have mapped is freed when they have released it.
     */
    private void giveUp(Throwable cause) {
      peers.forEach(MappedPeer::unmap);
      try {
        if (areOffered) {
          rounds.barrier("peerunmapped", () -> {});
        }
        exports.forEach(IpcExport::close);
        if (signals != null) {
          signals.close();
        }
      } catch (RuntimeException e) {
        cause.addSuppressed(e);
      }
    }
  }

  /**
   * The memory of one rank as another rank accesses it.
   *
   * @param address of the memory
   * @param signals address of the signal words beside the memory
   * @param pid of the process that owns it
   * @param heldMemory keeps the memory mapped; empty if no mapping is needed
   * @param heldSignals keeps the words mapped; empty if no mapping is needed
   * @param access of this rank's device to that of another rank of this process
   */
  record MappedPeer(
      long address,
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
            offer.signalsAddress(),
            offer.memory().pid(),
            Optional.empty(),
            Optional.empty(),
            isOther
                ? Optional.of(PeerAccess.open(device, offer.memory().gpu()))
                : Optional.empty());
      }
      IpcMemory memory = IpcMemory.open(device, offer.memory());
      try {
        IpcMemory signals = IpcMemory.open(device, offer.signals());
        return new MappedPeer(
            memory.address(),
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
}
