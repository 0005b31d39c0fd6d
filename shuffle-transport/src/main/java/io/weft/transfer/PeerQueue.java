package io.weft.transfer;

import io.weft.peer.PeerAddress;
import io.weft.wire.BlockRange;
import io.weft.wire.BlocksOpened;
import io.weft.wire.OpenBlocks;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * What a reader still has to ask of one peer, and what is on its way. One request at a time waits
 * for its answer, because the answer says how far it reaches; the next one can go out while the
 * bytes of that answer come. Transfers are delivered in the order of their requests, so that the
 * chunks of a block keep theirs. For one thread.
 */
final class PeerQueue {
  /** Room for a block whose size the map status had rounded down to nothing. */
  private static final long LEAST_BYTES = 4096;

  private static final long ALIGNMENT = 64;

  private final PeerAddress peer;
  private final List<BlockRequest> requests = new ArrayList<>();
  private final ArrayDeque<IncomingBlocks> incoming = new ArrayDeque<>();
  private int next;
  private int skippedChunks;
  private long neededBytes;
  private boolean waiting;

  PeerQueue(PeerAddress peer) {
    this.peer = peer;
  }

  PeerAddress peer() {
    return peer;
  }

  void add(BlockRequest request) {
    requests.add(request);
  }

  /** Whether a request can go out now. */
  boolean isReady() {
    return !waiting && next < requests.size();
  }

  /** Whether there is nothing more to ask for. */
  boolean isDone() {
    return next == requests.size();
  }

  /** The next blocks to ask for, about so many bytes of them. Nothing changes by it. */
  TransferPlan plan(long requestBytes) {
    List<BlockRequest> batch = new ArrayList<>();
    long expected = 0;
    for (int i = next; i < requests.size() && expected < requestBytes; i++) {
      if (batch.size() == OpenBlocks.MOST_RANGES) {
        break;
      }
      batch.add(requests.get(i));
      expected += roomFor(requests.get(i));
    }
    long room = Math.max(neededBytes, Math.min(requestBytes, Math.max(expected, LEAST_BYTES)));
    return new TransferPlan(this, batch, skippedChunks, OpenBlocks.MOST_CHUNKS, room, false);
  }

  /** A little more than expected: estimates err, and every chunk is rounded up. */
  private static long roomFor(BlockRequest request) {
    int blocks = request.endPartition() - request.startPartition();
    return request.expectedBytes() + request.expectedBytes() / 8 + ALIGNMENT * blocks;
  }

  /** A plan went out. */
  void sent() {
    waiting = true;
  }

  /** Moves on behind what an answer covers. */
  void answered(BlocksOpened answer) {
    waiting = false;
    neededBytes = answer.neededBytes();
    int last = answer.ranges() - 1;
    if (answer.complete()) {
      next += answer.ranges();
      skippedChunks = 0;
    } else {
      skippedChunks = (last == 0 ? skippedChunks : 0) + answer.rangeChunks(last);
      next += last;
    }
  }

  /** What is on its way, in the order of delivery. */
  ArrayDeque<IncomingBlocks> incoming() {
    return incoming;
  }

  /** Puts a transfer where another one was or, if that has chunks to deliver, right behind it. */
  void replace(IncomingBlocks old, IncomingBlocks replacement) {
    List<IncomingBlocks> all = new ArrayList<>(incoming);
    all.add(all.indexOf(old) + 1, replacement);
    incoming.clear();
    incoming.addAll(all);
  }

  static List<BlockRange> ranges(List<BlockRequest> requests) {
    return requests.stream()
        .map(r -> new BlockRange(r.key(), r.startPartition(), r.endPartition()))
        .toList();
  }
}
