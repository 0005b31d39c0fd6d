package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import java.util.List;
import java.util.function.IntToLongFunction;

/**
 * Large operations on private buffers, with one copy by the kernel from the buffer of the owner to
 * its place in the buffer of the reader. See {@link io.weft.collectives.Algorithm#KERNEL_COPY}.
 *
 * <p>Called after the entry, in which all ranks have published the addresses of what they send.
 * Every rank only reads what it received the right to read by that entry or a later sync, and ends
 * with a sync, because until then other ranks read its buffers. Buffers are off the heap, and the
 * operation keeps their owners reachable.
 */
final class KernelCopyCollectives {
  /** A read of more is done in pieces, between which the rank checks for failures. */
  private static final long PIECE_BYTES = 4 << 20;

  private final HostRanks host;
  private final WaitLoop waiting;
  private final int[] processes;
  private final ProcessMemory memory = new ProcessMemory();

  /**
   * The collectives of one rank.
   *
   * @param processes the process ids of the host's ranks, which can all read each other
   */
  KernelCopyCollectives(HostRanks host, WaitLoop waiting, List<Integer> processes) {
    this.host = host;
    this.waiting = waiting;
    this.processes = processes.stream().mapToInt(Integer::intValue).toArray();
  }

  private long send(int peer) {
    return host.block(peer).sendAddress(host.stamp());
  }

  /** Whether every rank's send buffer of this entry may be read. */
  boolean reachesSends() {
    for (int peer = 0; peer < host.size(); peer++) {
      if (send(peer) == 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Reads memory of a peer to an address of this process.
   *
   * @throws CollectiveException naming both ranks, when the memory cannot be read; or the failure
   *     of a rank that ended the operation
   */
  private void read(Call call, int peer, long from, long to, long bytes) {
    if (bytes <= 0) {
      return;
    }
    waiting.begin();
    long done = 0;
    while (done < bytes) {
      long piece = Math.min(PIECE_BYTES, bytes - done);
      long read = memory.read(processes[peer], from + done, to + done, piece);
      if (read <= 0) {
        throw failure(call, peer, from + done, bytes - done, read);
      }
      done += read;
      if (done < bytes) {
        waiting.check(() -> List.of(host.rank(peer)));
      }
    }
    waiting.end();
  }

  private CollectiveException failure(Call call, int peer, long from, long bytes, long result) {
    int rank = host.rank(peer);
    // A rank that left after a failure frees its buffers: the failure is the reason then.
    waiting.check(() -> List.of(rank));
    return new CollectiveException(
        ProcessMemory.isEnd(result) ? Kind.DEAD : Kind.IO,
        List.of(rank),
        "rank %d is %s: rank %d could not read %d bytes at 0x%x of process %d for %s: %s"
            .formatted(
                rank,
                ProcessMemory.isEnd(result) ? "dead" : "not readable",
                host.rank(host.me()),
                bytes,
                from,
                processes[peer],
                call,
                ProcessMemory.meaning(result)));
  }

  /**
   * Reads rows of a ragged all-to-all.
   *
   * @param offset of the rows in the peer's send buffer, in bytes
   */
  void readRows(Call call, int peer, long offset, long to, long bytes) {
    read(call, peer, send(peer) + offset, to, bytes);
  }

  /** Waits until no rank reads this rank's buffers any more. */
  void endReads() {
    host.sync();
  }

  /** Requires that no rank's buffers overlap. */
  void allToAll(Call call, TypedBuffer send, TypedBuffer receive) {
    long part = send.bytes() / host.size();
    long own = host.me() * part;
    LibraryCopy.copyToAny(send.address() + own, receive.address() + own, part);
    for (int distance = 1; distance < host.size(); distance++) {
      int peer = host.after(distance);
      read(call, peer, send(peer) + own, receive.address() + peer * part, part);
    }
    host.sync();
  }

  void allGather(Call call, TypedBuffer send, TypedBuffer receive) {
    allGather(call, this::send, send, receive);
  }

  /**
   * An all-gather without an entry.
   *
   * @param sends the addresses of the send buffers of all other ranks, by their index
   */
  void allGather(Call call, IntToLongFunction sends, TypedBuffer send, TypedBuffer receive) {
    gatherHere(call, sends, send, receive);
    host.sync();
  }

  private void gatherHere(
      Call call, IntToLongFunction sends, TypedBuffer send, TypedBuffer receive) {
    long bytes = send.bytes();
    InPlaceCollectives.copy(send.address(), receive.address() + host.me() * bytes, bytes);
    for (int distance = 1; distance < host.size(); distance++) {
      int peer = host.after(distance);
      read(call, peer, sends.applyAsLong(peer), receive.address() + peer * bytes, bytes);
    }
  }

  void gather(Call call, int root, TypedBuffer send, TypedBuffer receive) {
    if (root == host.me()) {
      gatherHere(call, this::send, send, receive);
    }
    host.sync();
  }

  void scatter(Call call, int root, TypedBuffer send, TypedBuffer receive) {
    long part = host.me() * receive.bytes();
    if (root == host.me()) {
      InPlaceCollectives.copy(send.address() + part, receive.address(), receive.bytes());
    } else {
      read(call, root, send(root) + part, receive.address(), receive.bytes());
    }
    host.sync();
  }
}
