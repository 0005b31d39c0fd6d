package io.weft.transfer;

import io.weft.peer.PeerAddress;
import io.weft.wire.BlockRange;
import io.weft.wire.BlocksOpened;
import io.weft.wire.OpenBlocks;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * The pending and outstanding requests of a reader to one peer. At most one request waits for its
 * answer, because the answer tells how many blocks it covers. The next request can be sent while
 * the bytes of that answer arrive. Chunks are delivered in the order of the requests, which keeps
 * the order within a block. For one thread.
 */
final class PeerQueue {
  /** The least memory for a request. A map status may round a small size down to 0. */
  private static final long MIN_BYTES = 4096;

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

  /** Whether a request can be sent now. */
  boolean isReady() {
    return !waiting && next < requests.size();
  }

  /** Whether all blocks were requested. */
  boolean isDone() {
    return next == requests.size();
  }

  /** Plans a request for about this many bytes. Does not change the queue. */
  TransferPlan plan(long requestBytes) {
    List<BlockRequest> batch = new ArrayList<>();
    long expected = 0;
    for (int i = next; i < requests.size() && expected < requestBytes; i++) {
      if (batch.size() == OpenBlocks.MOST_RANGES) {
        break;
      }
      batch.add(requests.get(i));
      expected += memoryFor(requests.get(i));
    }
    long bytes = Math.max(neededBytes, Math.min(requestBytes, Math.max(expected, MIN_BYTES)));
    return new TransferPlan(this, batch, skippedChunks, OpenBlocks.MOST_CHUNKS, bytes, false);
  }

  /** The expected bytes and an eighth more: estimates err, and every chunk is rounded up. */
  private static long memoryFor(BlockRequest request) {
    int blocks = request.endPartition() - request.startPartition();
    return request.expectedBytes() + request.expectedBytes() / 8 + ALIGNMENT * blocks;
  }

  /** Records that a request was sent. */
  void sent() {
    waiting = true;
  }

  /** Skips the blocks that an answer covers. */
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

  /** The outstanding requests in the order of delivery. */
  ArrayDeque<IncomingBlocks> incoming() {
    return incoming;
  }

  /**
   * Inserts a replacement directly after a failed request, which may still have chunks to deliver.
   */
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
