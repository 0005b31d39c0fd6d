package io.weft.collectives.host;

import io.weft.collectives.AllToAll;
import io.weft.collectives.Gather;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.memory.Memory;

/**
 * Operations in which every pair of ranks exchanges different data. See {@link
 * io.weft.collectives.Algorithm#PAIRWISE}. Each rank starts with the peer after itself, so that not
 * all ranks start with the same one.
 */
final class PairwiseCollectives {
  /**
   * The temporary memory of an all-to-all on one buffer, for all peers together. It limits the
   * messages of every all-to-all: each rank chooses on its own whether it uses one buffer.
   */
  static final long TEMPORARY_BYTES = 4 << 20;

  /**
   * With very many ranks it is more, because the headers of shorter messages would cost too much.
   */
  private static final long MIN_CHUNK_BYTES = 16 << 10;

  /** The messages to or from one peer that an all-to-all on two buffers starts at once. */
  private static final int MESSAGES_AHEAD = 16;

  private final int me;
  private final int nranks;
  private final RankGroup pairs;
  private final Scratch scratch = new Scratch();

  PairwiseCollectives(RankGroup members) {
    this.me = members.me();
    this.nranks = members.size();
    this.pairs = members;
  }

  private int peer(int distance) {
    return pairs.at(distance);
  }

  void allToAll(Call call, AllToAll operation) {
    long part = operation.send().bytes() / nranks;
    long from = operation.send().address();
    long to = operation.receive().address();
    if (from == to) {
      allToAllInPlace(call, from, part);
      return;
    }
    long chunkBytes = chunkBytes(part);
    for (int step = 0; step < steps(part); step++) {
      long done = step * chunkBytes;
      long bytes = Math.min(chunkBytes, part - done);
      for (int distance = 1; distance < nranks; distance++) {
        int peer = peer(distance);
        pairs.awaitSends(peer, MESSAGES_AHEAD);
        pairs.awaitReceives(peer, MESSAGES_AHEAD);
        pairs.send(call, step, peer, from + peer * part + done, bytes);
        pairs.receive(call, step, peer, to + peer * part + done, bytes);
      }
    }
    Memory.copy(from + me * part, to + me * part, part);
    pairs.finish();
  }

  private long chunkBytes(long part) {
    return Math.min(part, Math.max(MIN_CHUNK_BYTES, TEMPORARY_BYTES / 2 / nranks));
  }

  /** The messages to each peer, at least one: even an empty one tells of a mismatch. */
  private int steps(long part) {
    return part == 0 ? 1 : Math.toIntExact((part - 1) / chunkBytes(part) + 1);
  }

  /**
   * Every pair swaps its parts chunk by chunk. A chunk is copied to temporary memory until it has
   * been sent, and the peer's chunk takes its place. Two chunks for each peer are in flight, so one
   * is sent while the next is copied.
   */
  private void allToAllInPlace(Call call, long buffer, long part) {
    long chunkBytes = chunkBytes(part);
    long temporary = scratch.address(2 * chunkBytes * nranks);
    for (int step = 0; step < steps(part); step++) {
      long done = step * chunkBytes;
      long bytes = Math.min(chunkBytes, part - done);
      for (int distance = 1; distance < nranks; distance++) {
        int peer = peer(distance);
        long chunk = buffer + peer * part + done;
        long kept = temporary + (2L * peer + step % 2) * chunkBytes;
        pairs.awaitSends(peer, 1);
        Memory.copy(chunk, kept, bytes);
        pairs.send(call, step, peer, kept, bytes);
        pairs.receive(call, step, peer, chunk, bytes);
      }
    }
    pairs.finish();
  }

  void gather(Call call, Gather operation) {
    TypedBuffer send = operation.send();
    if (operation.root() != me) {
      pairs.send(call, 0, operation.root(), send.address(), send.bytes());
    } else {
      long to = operation.receive().address();
      for (int distance = 1; distance < nranks; distance++) {
        int peer = peer(distance);
        pairs.receive(call, 0, peer, to + peer * send.bytes(), send.bytes());
      }
      copyUnlessSame(send.address(), to + me * send.bytes(), send.bytes());
    }
    pairs.finish();
  }

  void scatter(Call call, Scatter operation) {
    TypedBuffer receive = operation.receive();
    if (operation.root() != me) {
      pairs.receive(call, 0, operation.root(), receive.address(), receive.bytes());
    } else {
      long from = operation.send().address();
      for (int distance = 1; distance < nranks; distance++) {
        int peer = peer(distance);
        pairs.send(call, 0, peer, from + peer * receive.bytes(), receive.bytes());
      }
      copyUnlessSame(from + me * receive.bytes(), receive.address(), receive.bytes());
    }
    pairs.finish();
  }

  private static void copyUnlessSame(long from, long to, long bytes) {
    if (from != to) {
      Memory.copy(from, to, bytes);
    }
  }
}
