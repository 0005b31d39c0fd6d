package io.weft.collectives.peer;

import io.weft.collectives.Communicator;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.IpcExport;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Opens a window. Every rank offers its memory, then maps the memory that the others offer. A
 * failure on one rank fails all ranks. Confined to the thread of its stream.
 */
final class WindowOpening {
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
      return new PeerWindow(hosts.rank(), memory, stream, signals, exports, peers);
    } catch (RuntimeException | Error e) {
      giveUp(e);
      throw e;
    }
  }

  private PeerOffer offer() {
    if (hosts.nranks() > PeerSignals.MOST_RANKS || !hosts.topology().isOneHost()) {
      throw new IllegalArgumentException(
          "the %d ranks have to be %d at most and on one host"
              .formatted(hosts.nranks(), PeerSignals.MOST_RANKS));
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
    return Refusal.named(hosts.rank(), "share memory", part);
  }

  /** Undoes the opening. Memory that others may have mapped is freed when they have released it. */
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
