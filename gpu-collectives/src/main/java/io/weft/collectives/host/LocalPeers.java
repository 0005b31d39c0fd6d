package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.bootstrap.RankFolder.Liveness;
import io.weft.collectives.host.ControlBlock.ControlLayout;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.KernelCopy;
import io.weft.collectives.host.MessageChannel.ByteLink;
import io.weft.collectives.host.MessageChannel.ByteLink.Traffic;
import io.weft.collectives.host.TimeoutDiagnosis.RankStatus;
import io.weft.memory.Memory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The ranks on this host, as their control segments and locks show them. Thread-safe as long as the
 * segments are mapped.
 */
final class LocalPeers {
  private final int me;
  private final List<Peer> all;
  private final KernelCopy kernelCopy;
  private final boolean crowded;

  /**
   * One rank on this host.
   *
   * @param rank in the communicator
   * @param block its control segment
   * @param life tells whether its process is alive
   * @param process the id of its process
   */
  record Peer(int rank, ControlBlock block, Liveness life, int process) {}

  /**
   * Creates the view of all ranks of the host.
   *
   * @param me rank of this one in the communicator
   * @param kernelCopy when each of these ranks reads the memory of the others by the kernel
   * @param crowded whether they are more than the processors that one of them may use
   */
  LocalPeers(int me, List<Peer> all, KernelCopy kernelCopy, boolean crowded) {
    this.me = me;
    this.all = List.copyOf(all);
    this.kernelCopy = kernelCopy;
    this.crowded = crowded;
  }

  /** The processes of these ranks, if each can read the memory of the others by the kernel. */
  Optional<List<Integer>> readableProcesses() {
    return kernelCopy == KernelCopy.NEVER
        ? Optional.empty()
        : Optional.of(all.stream().map(Peer::process).toList());
  }

  /** When these ranks read each other's memory by the kernel. */
  KernelCopy kernelCopy() {
    return kernelCopy;
  }

  /** Whether these ranks are more than the processors that one of them may use. */
  boolean areCrowded() {
    return crowded;
  }

  private Optional<Peer> find(int rank) {
    for (Peer peer : all) {
      if (peer.rank() == rank) {
        return Optional.of(peer);
      }
    }
    return Optional.empty();
  }

  private ControlBlock block(int rank) {
    return find(rank).orElseThrow().block();
  }

  ControlBlock mine() {
    return block(me);
  }

  boolean has(int rank) {
    return find(rank).isPresent();
  }

  int size() {
    return all.size();
  }

  /** The synchronisation of these ranks. */
  HostRanks hostRanks(WaitLoop waiting) {
    int[] ranks = all.stream().mapToInt(Peer::rank).toArray();
    ControlBlock[] blocks = all.stream().map(Peer::block).toArray(ControlBlock[]::new);
    return new HostRanks(index(me), ranks, blocks, waiting);
  }

  /** The rings between this rank and another one. */
  RingLink link(int rank, Traffic traffic, int ringBytes) {
    return new RingLink(mine(), block(rank), index(me), index(rank), traffic, ringBytes);
  }

  private int index(int rank) {
    int index = 0;
    while (all.get(index).rank() != rank) {
      index++;
    }
    return index;
  }

  /** The failure of the first rank that has one. */
  Optional<CollectiveException> failure() {
    for (Peer peer : all) {
      if (peer.block().state() == ControlBlock.FAILED) {
        return peer.block().failure();
      }
    }
    return Optional.empty();
  }

  boolean isClosed(int rank) {
    return block(rank).state() == ControlBlock.CLOSED;
  }

  Optional<WaitStatus> waiting(int rank) {
    return block(rank).waiting();
  }

  /** Whether its process has ended without closing. Costs a system call. */
  boolean isDead(int rank) {
    return find(rank).orElseThrow().life().hasEnded();
  }

  /** Their ranks in the communicator, ascending. */
  List<Integer> ranks() {
    return all.stream().map(Peer::rank).toList();
  }

  /** Why a rank will take no further part; empty while it is alive. Costs a system call. */
  Optional<CollectiveException> end(int rank) {
    ControlBlock block = block(rank);
    if (block.state() == ControlBlock.FAILED) {
      return block.failure();
    }
    boolean closed = block.state() == ControlBlock.CLOSED;
    if (!closed && !isDead(rank)) {
      return Optional.empty();
    }
    return Optional.of(
        new CollectiveException(
            closed ? Kind.CLOSED : Kind.DEAD,
            List.of(rank),
            "rank "
                + rank
                + (closed ? " closed its communicator" : " is dead: its process ended")));
  }

  CollectiveException dead(int rank, Call call) {
    return new CollectiveException(
        Kind.DEAD,
        List.of(rank),
        "rank " + rank + " is dead: its process ended before it did its part of " + call);
  }

  /** The beats of all ranks, to be compared with later ones. */
  Map<Integer, Integer> beats() {
    Map<Integer, Integer> beats = new HashMap<>();
    for (Peer peer : all) {
      beats.put(peer.rank(), peer.block().beat());
    }
    return beats;
  }

  int beat(int rank) {
    return block(rank).beat();
  }

  /** Whether its communicator has failed or was closed. */
  boolean hasEnded(int rank) {
    return block(rank).state() != ControlBlock.OPEN;
  }

  /**
   * The status of a rank on this host.
   *
   * @param waiting what the rank waits for
   */
  RankStatus status(int rank, Call call, Optional<WaitStatus> waiting) {
    ControlBlock block = block(rank);
    return switch (block.state()) {
      case ControlBlock.FAILED -> RankStatus.failed(block.failure().orElseThrow());
      case ControlBlock.CLOSED -> RankStatus.CLOSED;
      default -> isDead(rank) ? RankStatus.dead(dead(rank, call)) : RankStatus.open(waiting);
    };
  }

  /**
   * A link through two rings in shared memory. The sender owns the data and the count of bytes
   * written; the receiver owns the count of bytes consumed. Counts only grow (as unsigned 32-bit
   * numbers that wrap around), so their difference is the number of bytes in flight.
   */
  static final class RingLink implements ByteLink {
    private final long outData;
    private final long outWritten;
    private final long outConsumed;
    private final long inData;
    private final long inWritten;
    private final long inConsumed;
    private final int ringBytes;
    private int put;
    private int pushed;
    private int taken;

    /**
     * Opens the link between two ranks of a host. It continues from the counts in the segments,
     * which are zero in new ones.
     *
     * @param mine this rank's segment
     * @param theirs the peer's
     * @param me index of this rank on the host
     * @param peer index of the peer
     */
    RingLink(
        ControlBlock mine, ControlBlock theirs, int me, int peer, Traffic traffic, int ringBytes) {
      this.outWritten = mine.written(traffic, peer);
      this.outData = outWritten + ControlLayout.LINE;
      this.outConsumed = theirs.consumed(traffic, me);
      this.inWritten = theirs.written(traffic, me);
      this.inData = inWritten + ControlLayout.LINE;
      this.inConsumed = mine.consumed(traffic, peer);
      this.ringBytes = ringBytes;
      this.put = Memory.getIntAcquire(outWritten);
      this.pushed = put;
      this.taken = Memory.getIntAcquire(inConsumed);
    }

    @Override
    public int put(long address, long bytes) {
      int room = ringBytes - (put - Memory.getIntAcquire(outConsumed));
      int length = (int) Math.min(bytes, room);
      if (length > 0) {
        int at = put & ringBytes - 1;
        int first = Math.min(length, ringBytes - at);
        LibraryCopy.copy(address, outData + at, first);
        LibraryCopy.copy(address + first, outData, length - first);
        put += length;
      }
      return length;
    }

    @Override
    public boolean push() {
      if (pushed != put) {
        pushed = put;
        Memory.putIntRelease(outWritten, put);
      }
      return true;
    }

    @Override
    public int take(long address, long bytes) {
      int available = Memory.getIntAcquire(inWritten) - taken;
      int length = (int) Math.min(bytes, available);
      if (length > 0) {
        int at = taken & ringBytes - 1;
        int first = Math.min(length, ringBytes - at);
        Memory.copy(inData + at, address, first);
        Memory.copy(inData, address + first, length - first);
        taken += length;
        Memory.putIntRelease(inConsumed, taken);
      }
      return length;
    }
  }
}
