package io.weft.collectives.host;

import io.weft.collectives.AllReduce;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.Reduction;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.memory.Memory;
import java.util.List;

/**
 * Large operations on private buffers, with one copy by the kernel from the buffer of the owner to
 * its place in the buffer of the reader. See {@link io.weft.collectives.Algorithm#KERNEL_COPY}.
 *
 * <p>Called after the entry, in which all ranks have published the addresses of their buffers.
 * Every rank only reads what it received the right to read by that entry or a later sync, and ends
 * with a sync, because until then other ranks read its buffers. Buffers are off the heap, and the
 * operation keeps their owners reachable.
 */
final class KernelCopyCollectives {
  /** A read of more is done in pieces, between which the rank checks for failures. */
  private static final long PIECE_BYTES = 4 << 20;

  /**
   * What two ranks read of each other before they reduce it. It stays in the second-level cache
   * beside what is sent and received. Measured: with 256 KiB an all-reduce takes a tenth longer.
   */
  private static final int CHUNK_BYTES = 64 << 10;

  /** What more ranks read of each of them. */
  private static final int CHUNK_BYTES_OF_MANY = 32 << 10;

  private final HostRanks host;
  private final Reductions reductions = new Reductions();
  private final WaitLoop waiting;
  private final int[] processes;
  private final ProcessMemory memory = new ProcessMemory();
  private final Scratch scratch = new Scratch();
  private final long[] sources;
  private final long[] target = new long[1];

  /**
   * The collectives of one rank.
   *
   * @param processes the process ids of the host's ranks, which can all read each other
   */
  KernelCopyCollectives(HostRanks host, WaitLoop waiting, List<Integer> processes) {
    this.host = host;
    this.waiting = waiting;
    this.processes = processes.stream().mapToInt(Integer::intValue).toArray();
    this.sources = new long[host.size()];
  }

  private long send(int peer) {
    return host.block(peer).sendAddress(host.stamp());
  }

  private long receive(int peer) {
    return host.block(peer).receiveAddress(host.stamp());
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

  /** The peer at this distance after this rank, so that not all ranks read the same one first. */
  private int peer(int distance) {
    return (host.me() + distance) % host.size();
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
   * Every rank reduces its share, chunk by chunk in the cache, and then reads the results of the
   * others from their receive buffers.
   */
  void allReduce(Call call, AllReduce operation) {
    TypedBuffer send = operation.send();
    TypedBuffer receive = operation.receive();
    int bytes = send.type().bytes();
    Shares shares = new Shares(send.count(), host.size(), bytes);
    long share = shares.start(host.me()) * bytes;
    reduce(call, send, operation.op(), share, shares.length(host.me()), receive.address() + share);
    host.sync();
    for (int distance = 1; distance < host.size(); distance++) {
      int peer = peer(distance);
      long place = shares.start(peer) * bytes;
      read(
          call,
          peer,
          receive(peer) + place,
          receive.address() + place,
          shares.length(peer) * bytes);
    }
    host.sync();
  }

  /** Every rank reads its part from the others, chunk by chunk, and reduces it. */
  void reduceScatter(Call call, ReduceScatter operation) {
    TypedBuffer receive = operation.receive();
    reduce(
        call,
        operation.send(),
        operation.op(),
        host.me() * receive.bytes(),
        receive.count(),
        receive.address());
    host.sync();
  }

  /**
   * Reduces a run of the send buffers of all ranks.
   *
   * @param place bytes before it in every send buffer
   * @param to the address of the result
   */
  private void reduce(Call call, TypedBuffer send, ReduceOp op, long place, long count, long to) {
    int bytes = send.type().bytes();
    long chunkCount = (host.size() == 2 ? CHUNK_BYTES : CHUNK_BYTES_OF_MANY) / bytes;
    long room = scratch.address(chunkCount * bytes * (host.size() - 1));
    Reduction reduction = reductions.of(send.type(), op);
    for (long done = 0; done < count; done += chunkCount) {
      long length = Math.min(chunkCount, count - done);
      long chunk = place + done * bytes;
      for (int distance = 1; distance < host.size(); distance++) {
        int peer = peer(distance);
        sources[peer] = room + (distance - 1) * chunkCount * bytes;
        read(call, peer, send(peer) + chunk, sources[peer], length * bytes);
      }
      sources[host.me()] = send.address() + chunk;
      target[0] = to + done * bytes;
      reduction.run(
          sources, sources.length, target, 1, length, Reductions.divisor(op, host.size()));
    }
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

  /** Requires that this rank's part is at its place. */
  void allGather(Call call, TypedBuffer send, TypedBuffer receive) {
    for (int distance = 1; distance < host.size(); distance++) {
      int peer = peer(distance);
      read(call, peer, send(peer), receive.address() + peer * send.bytes(), send.bytes());
    }
    host.sync();
  }

  void broadcast(Call call, int root, TypedBuffer send, TypedBuffer receive) {
    if (root == host.me()) {
      InPlaceCollectives.copy(send.address(), receive.address(), receive.bytes());
    } else {
      read(call, root, send(root), receive.address(), receive.bytes());
    }
    host.sync();
  }

  /** Requires that no rank's buffers overlap. */
  void allToAll(Call call, TypedBuffer send, TypedBuffer receive) {
    long part = send.bytes() / host.size();
    long own = host.me() * part;
    Memory.copy(send.address() + own, receive.address() + own, part);
    for (int distance = 1; distance < host.size(); distance++) {
      int peer = peer(distance);
      read(call, peer, send(peer) + own, receive.address() + peer * part, part);
    }
    host.sync();
  }

  void gather(Call call, int root, TypedBuffer send, TypedBuffer receive) {
    if (root == host.me()) {
      long own = receive.address() + host.me() * send.bytes();
      InPlaceCollectives.copy(send.address(), own, send.bytes());
      for (int distance = 1; distance < host.size(); distance++) {
        int peer = peer(distance);
        read(call, peer, send(peer), receive.address() + peer * send.bytes(), send.bytes());
      }
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
