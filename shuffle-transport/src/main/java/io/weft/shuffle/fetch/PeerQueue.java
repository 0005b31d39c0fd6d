package io.weft.shuffle.fetch;

import io.weft.shuffle.fetch.ChunkReader.CurrentChunk;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.net.OpenBlocks.BlockRange;
import io.weft.shuffle.peer.PeerAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

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

  /**
   * Bytes for each expected byte before the first answer: map statuses may have the sizes of
   * compressed blocks. An answer frees the memory that it does not need.
   */
  private static final double FIRST_SCALE = 4;

  private final PeerAddress peer;
  private final List<BlockRequest> requests = new ArrayList<>();
  private final ArrayDeque<DeliveryState> incoming = new ArrayDeque<>();
  private int next;
  private int skippedChunks;
  private long neededBytes;
  private long answeredBytes;
  private long coveredBytes;
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
  FetchPlan plan(long requestBytes) {
    List<BlockRequest> batch = new ArrayList<>();
    long expected = 0;
    for (int i = next; i < requests.size() && expected < requestBytes; i++) {
      if (batch.size() == OpenBlocks.MAX_RANGES) {
        break;
      }
      batch.add(requests.get(i));
      expected += memoryFor(requests.get(i));
    }
    long bytes = Math.max(neededBytes, Math.min(requestBytes, Math.max(expected, MIN_BYTES)));
    return new FetchPlan(this, batch, skippedChunks, OpenBlocks.MAX_CHUNKS, bytes, false);
  }

  /**
   * The expected bytes, corrected by earlier answers, and an eighth more: estimates err, and every
   * chunk is rounded up.
   */
  private long memoryFor(BlockRequest request) {
    int blocks = request.endPartition() - request.startPartition();
    double scale = coveredBytes == 0 ? FIRST_SCALE : (double) answeredBytes / coveredBytes;
    long bytes = (long) (request.expectedBytes() * scale);
    return bytes + bytes / 8 + ALIGNMENT * blocks;
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
    answeredBytes += answer.totalBytes();
    for (int i = next; i < next + (answer.complete() ? last + 1 : last); i++) {
      coveredBytes += requests.get(i).expectedBytes();
    }
    if (answer.complete()) {
      next += answer.ranges();
      skippedChunks = 0;
    } else {
      skippedChunks = (last == 0 ? skippedChunks : 0) + answer.rangeChunks(last);
      next += last;
    }
  }

  /** The outstanding requests in the order of delivery. */
  ArrayDeque<DeliveryState> incoming() {
    return incoming;
  }

  /**
   * Inserts a replacement directly after a failed request, which may still have chunks to deliver.
   */
  void replace(DeliveryState old, DeliveryState replacement) {
    List<DeliveryState> all = new ArrayList<>(incoming);
    all.add(all.indexOf(old) + 1, replacement);
    incoming.clear();
    incoming.addAll(all);
  }

  static List<BlockRange> ranges(List<BlockRequest> requests) {
    return requests.stream()
        .map(r -> new BlockRange(r.key(), r.startPartition(), r.endPartition()))
        .toList();
  }

  /**
   * Whether a request is in its reader's event queue, so that it is queued at most once. A producer
   * first changes the state and then raises the signal. The consumer first clears the signal and
   * then reads the state. So no change is missed. Thread-safe.
   */
  static final class EventSignal {
    private final AtomicBoolean raised = new AtomicBoolean();

    /** Raises the signal. Returns whether the request must be queued now. */
    boolean raise() {
      return !raised.getAndSet(true);
    }

    /** Clears the signal after the request was taken out of the queue. */
    void clear() {
      raised.set(false);
    }
  }

  /**
   * The reader's view of a request: which chunks were delivered and whether their memory is still
   * in use. For the reader's thread, except for the signal.
   */
  static final class DeliveryState {
    private final FetchRequest request;
    private final EventSignal signal;
    private boolean announced;
    private boolean broken;
    private int delivered;
    private int inUse;
    private int range;
    private int rangeEnd;

    /**
     * Takes ownership of the request.
     *
     * @param signal raised while this object is in the reader's event queue
     */
    DeliveryState(FetchRequest request, EventSignal signal) {
      this.request = request;
      this.signal = signal;
    }

    FetchRequest request() {
      return request;
    }

    /** Clears the signal. Must be called before the state is read: later changes signal again. */
    void clearSignal() {
      signal.clear();
    }

    /** Returns true once, after the answer has arrived. */
    boolean takeAnnouncement() {
      boolean first = !announced && request.answer() != null;
      announced |= first;
      return first;
    }

    /** Marks the request as failed. Another request fetches the missing chunks. */
    void markBroken() {
      broken = true;
    }

    boolean isBroken() {
      return broken;
    }

    /** Moves to the next chunk that has arrived. Returns false if there is none. */
    boolean next(CurrentChunk current) {
      if (!announced || delivered == request.arrivedChunks()) {
        return false;
      }
      BlocksOpened answer = request.answer();
      if (delivered == 0) {
        rangeEnd = answer.rangeChunks(0);
      }
      while (delivered >= rangeEnd) {
        rangeEnd += answer.rangeChunks(++range);
      }
      current.set(
          request.plan().requests().get(range),
          answer.partition(delivered),
          answer.rows(delivered),
          request.address(delivered),
          answer.length(delivered));
      delivered++;
      return true;
    }

    /**
     * Whether no more chunks will arrive and all were delivered. False for a failed request until
     * another one fetches the missing chunks.
     */
    boolean isDelivered() {
      // Read before the answer: an answer without chunks sets first the answer, then the end.
      boolean ended = request.isEnded();
      boolean known = announced || request.answer() == null;
      return ended
          && known
          && (request.failure() == null || broken)
          && delivered == request.arrivedChunks();
    }

    /** Counts one more chunk that the task reads. */
    void use() {
      inUse++;
    }

    /** Counts one chunk less. Returns true if the memory is no longer needed. */
    boolean release() {
      inUse--;
      return isUnused();
    }

    boolean isUnused() {
      return inUse == 0 && isDelivered();
    }

    /** The block request to name in an error. */
    BlockRequest failedRequest() {
      return request.plan().requests().get(failedRange());
    }

    /** The first partition of the failed block request that did not arrive. */
    int failedPartition() {
      BlocksOpened answer = request.answer();
      return answer == null || request.arrivedChunks() == answer.chunks()
          ? failedRequest().startPartition()
          : answer.partition(request.arrivedChunks());
    }

    private int failedRange() {
      BlocksOpened answer = request.answer();
      if (answer == null) {
        return Math.max(0, request.refusedRange());
      }
      int failed = 0;
      int end = answer.rangeChunks(0);
      while (end <= request.arrivedChunks() && failed < answer.ranges() - 1) {
        end += answer.rangeChunks(++failed);
      }
      return failed;
    }
  }

  /**
   * The content of one request.
   *
   * @param queue of the request's peer
   * @param requests in order, at least one
   * @param firstChunk number of chunks of the first range that were delivered before
   * @param maxChunks limit for the chunks of the answer
   * @param bytes bytes to reserve for the answer
   * @param repeated whether it requests the rest of a broken answer. The queue has already skipped
   *     that answer, so the new answer must have exactly the rest
   */
  record FetchPlan(
      PeerQueue queue,
      List<BlockRequest> requests,
      int firstChunk,
      int maxChunks,
      long bytes,
      boolean repeated) {

    /** Returns the message for this plan. */
    OpenBlocks message(long maxBytes, boolean checksums, CompressionChoice compression) {
      return new OpenBlocks(
          queue.peer().incarnation(),
          maxBytes,
          firstChunk,
          maxChunks,
          checksums,
          compression.of(requests.get(0).key().shuffleId()),
          PeerQueue.ranges(requests));
    }

    /**
     * Returns a plan for the chunks of an answer that did not arrive. Without an answer, returns
     * this.
     */
    FetchPlan rest(BlocksOpened answer, int arrivedChunks) {
      if (answer == null) {
        return this;
      }
      int range = 0;
      int before = 0;
      while (before + answer.rangeChunks(range) <= arrivedChunks) {
        before += answer.rangeChunks(range++);
      }
      int skipped = (range == 0 ? firstChunk : 0) + arrivedChunks - before;
      List<BlockRequest> rest = requests.subList(range, answer.ranges());
      return new FetchPlan(queue, rest, skipped, answer.chunks() - arrivedChunks, bytes, true);
    }
  }
}
