package io.weft.shuffle.fetch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.shuffle.fetch.CompressionChoice.LinkRate;
import io.weft.shuffle.fetch.CompressionChoice.LinkRate.StreamRate;
import io.weft.shuffle.fetch.PeerQueue.FetchPlan;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.PeerConnection;
import io.weft.shuffle.net.PeerConnection.PendingCall;
import io.weft.shuffle.net.PeerConnection.StreamReceiver;
import io.weft.shuffle.net.WireException;
import io.weft.shuffle.net.WireException.DamagedMessageException;
import io.weft.shuffle.peer.ShuffleEvents.Fetch;
import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.shuffle.store.EncryptionKey;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.apache.spark.network.client.RpcResponseCallback;

/**
 * One request to a peer and the memory for its answer. The memory is reserved before the request is
 * sent, so nothing is allocated while bytes arrive.
 *
 * <p>The reader's thread starts it, takes its chunks and closes it. Connections call it on their
 * event loops. They copy bytes under the lock that {@link #close()} takes, so close can free the
 * memory at once; later bytes are dropped. If the memory is lent to the connection for a read, it
 * is freed when the connection returns it.
 */
final class FetchRequest implements RpcResponseCallback, StreamReceiver {
  private final FetchPlan plan;
  private final OpenBlocks message;
  private final SharedArena arena;
  private final Consumer<FetchRequest> signal;
  private final Optional<EncryptionKey> key;

  private final long timeoutNanos;

  private volatile PeerConnection connection;
  private volatile long lastProgress;

  /** Tracks the progress of the last request; null before the first one. */
  private volatile PendingCall call;

  private volatile BlocksOpened answer;
  private volatile Throwable failure;
  private volatile long failedAt;
  private volatile int refusedRange = -1;
  private volatile int arrivedChunks;
  private volatile boolean ended;

  @GuardedBy("this")
  private Extent extent;

  @GuardedBy("this")
  private ByteBuffer target;

  @GuardedBy("this")
  private boolean closed;

  @GuardedBy("this")
  private int loans;

  @GuardedBy("this")
  private ChunkReceiver receiver;

  @GuardedBy("this")
  private final StreamRate rate;

  /** The event of this request until it has ended; null if it is not traced. */
  @GuardedBy("this")
  private Fetch traced;

  /**
   * Takes ownership of the extent.
   *
   * @param message of the plan
   * @param key of encrypted chunks
   * @param link measures the bytes of the stream
   * @param signal called on any thread when the state changes
   * @param startedAt time by {@link System#nanoTime()} from which the timeout counts; for a retry,
   *     earlier by the time without progress of earlier attempts
   * @param timeout the longest time without progress
   */
  FetchRequest(
      FetchPlan plan,
      OpenBlocks message,
      SharedArena arena,
      Extent extent,
      Optional<EncryptionKey> key,
      LinkRate link,
      Consumer<FetchRequest> signal,
      long startedAt,
      Duration timeout) {
    this.plan = plan;
    this.arena = arena;
    this.extent = extent;
    this.target = arena.view(extent);
    this.message = message;
    this.key = key;
    this.rate = link.newStream();
    this.signal = signal;
    this.lastProgress = startedAt;
    this.timeoutNanos = timeout.toNanos();
  }

  /**
   * Sends the request when the connection is established.
   *
   * @param trace the event of this request, which has begun; null if it is not traced
   */
  void start(CompletableFuture<PeerConnection> connecting, Fetch trace) {
    synchronized (this) {
      traced = trace;
    }
    CompletableFuture<PeerConnection> unused =
        connecting.whenComplete(
            (connected, error) -> {
              if (error != null) {
                fail(error);
              } else {
                open(connected);
              }
            });
  }

  private void open(PeerConnection connected) {
    connection = connected;
    try {
      connected.open(message, newCall(), this);
    } catch (RuntimeException e) {
      // For example, the event loop is shutting down.
      fail(new IOException("the request cannot be sent: " + e, e));
    }
  }

  private PendingCall newCall() {
    PendingCall made =
        new PendingCall(later(lastProgress, connection.lastProgress()), timeoutNanos);
    call = made;
    return made;
  }

  FetchPlan plan() {
    return plan;
  }

  /**
   * The time of the last progress of this request, or of earlier requests on its connection,
   * because the requests of all readers queue there. A refused request has no place in the queue.
   * For it, any progress of the connection counts.
   */
  long lastProgress() {
    long own = lastProgress;
    PendingCall current = call;
    if (current == null) {
      return own;
    }
    return later(own, isRefused() ? connection.lastProgress() : current.lastProgress());
  }

  /**
   * The nanoseconds without progress before its failure. The reader may handle the failure much
   * later, because its task works on other chunks meanwhile.
   */
  long stalledNanos() {
    return Math.max(0, failedAt - lastProgress());
  }

  private static long later(long one, long other) {
    return other - one > 0 ? other : one;
  }

  private boolean isRefused() {
    return failure instanceof RefusedException;
  }

  /** Whether its connection answered later requests, but not this one. */
  boolean isOvertaken() {
    PendingCall current = call;
    return current != null && connection.lastProgress() - current.lastProgress() > 0;
  }

  /** The answer, or null before it arrives. */
  BlocksOpened answer() {
    return answer;
  }

  /** The number of complete chunks. */
  int arrivedChunks() {
    return arrivedChunks;
  }

  /** Whether no more bytes arrive, because all have arrived or the request failed. */
  boolean isEnded() {
    return ended;
  }

  /** The cause of the failure, or null. */
  Throwable failure() {
    return failure;
  }

  /** Position in the plan of the request that the peer refused, or -1. */
  int refusedRange() {
    return refusedRange;
  }

  /** Whether a retry may help: the connection failed or was lost, or bytes were damaged. */
  boolean isRetryable() {
    Throwable cause = failure;
    boolean answered = cause instanceof WireException || cause instanceof RefusedException;
    return (cause instanceof IOException && !answered) || isDamaged();
  }

  /** Whether received bytes were damaged. */
  boolean isDamaged() {
    return failure instanceof ChecksumException || failure instanceof DamagedMessageException;
  }

  /** The delay before a retry that the peer asked for; 0 if none. */
  long retryAfterMillis() {
    return failure instanceof RefusedException refused ? refused.retryAfterMillis() : 0;
  }

  /** The connection, or null before it is established. */
  PeerConnection connection() {
    return connection;
  }

  /** The bytes of memory that it holds now. */
  synchronized long heldBytes() {
    return extent == null ? 0 : extent.length();
  }

  /** The address of a chunk that has arrived. Valid until {@link #close()}. */
  synchronized long address(int chunk) {
    return extent.address() + receiver.offset(chunk);
  }

  /** Frees the memory that the answer does not need. */
  synchronized void trim() {
    if (extent != null && receiver != null && receiver.end() > 0) {
      extent = arena.trim(extent, receiver.end());
    }
  }

  /** Frees the memory. Later bytes are dropped. Can be repeated. */
  synchronized void close() {
    trace("closed by its reader");
    rate.end();
    closed = true;
    ended = true;
    if (receiver != null) {
      receiver.close();
    }
    free();
  }

  @GuardedBy("this")
  private void free() {
    if (extent != null && loans == 0) {
      arena.free(extent);
      extent = null;
      target = null;
    }
  }

  @Override
  public long streamBytes() {
    return answer.table().totalSentBytes();
  }

  @Override
  public synchronized ByteBuffer lendBuffer() {
    ByteBuffer lent = ended ? null : receiver.nextBuffer(target);
    loans += lent == null ? 0 : 1;
    return lent;
  }

  @Override
  public synchronized void bufferReturned() {
    loans--;
    if (closed) {
      free();
    }
  }

  @Override
  public void onSuccess(ByteBuffer response) {
    try {
      if (BlocksRefused.matches(response)) {
        BlocksRefused refusal = BlocksRefused.decode(response, message.ranges().size());
        refusedRange = refusal.range();
        fail(new RefusedException(refusal.reason(), refusal.retryAfterMillis()));
      } else {
        answered(BlocksOpened.decode(response, message));
      }
    } catch (WireException | RuntimeException e) {
      fail(e);
    }
  }

  private void answered(BlocksOpened opened) {
    boolean wanted;
    synchronized (this) {
      if (answer != null) {
        // Ignore a second answer.
        return;
      }
      wanted = !closed && failure == null && opened.chunks() > 0;
      if (failure == null) {
        receiver = new ChunkReceiver(opened, message.compression(), key);
        lastProgress = System.nanoTime();
        answer = opened;
        ended = ended || opened.chunks() == 0;
        if (ended) {
          trace("");
        }
      }
    }
    if (wanted) {
      connection.receive(opened.stream(), newCall(), this);
    } else if (opened.chunks() > 0) {
      connection.decline(opened.stream());
    }
    signal.accept(this);
  }

  @Override
  public void onFailure(Throwable cause) {
    fail(asIOException(cause));
  }

  @Override
  public void onData(String streamId, ByteBuffer data) {
    long now = System.nanoTime();
    lastProgress = now;
    boolean changed = false;
    synchronized (this) {
      if (!closed && failure == null) {
        rate.arrived(data.remaining(), now);
        changed = receive(streamId, data);
      }
    }
    if (changed) {
      signal.accept(this);
    }
  }

  @GuardedBy("this")
  private boolean receive(String streamId, ByteBuffer data) {
    if (!expected().toString().equals(streamId)) {
      fail(new WireException("stream " + expected() + " was requested, " + streamId + " came"));
      return false;
    }
    int before = arrivedChunks;
    try {
      receiver.receive(data, target);
    } catch (IOException e) {
      arrivedChunks = receiver.arrived();
      fail(e);
      return false;
    }
    arrivedChunks = receiver.arrived();
    if (data.hasRemaining()) {
      fail(new WireException("stream " + streamId + " has bytes beyond its last chunk"));
      return false;
    }
    return arrivedChunks > before;
  }

  private StreamId expected() {
    return answer.stream();
  }

  @Override
  public void onComplete(String streamId) {
    if (arrivedChunks < answer.chunks()) {
      fail(
          new WireException(
              "stream "
                  + streamId
                  + " ended after "
                  + arrivedChunks
                  + " of "
                  + answer.chunks()
                  + " chunks"));
    } else {
      complete();
      signal.accept(this);
    }
  }

  private synchronized void complete() {
    ended = true;
    rate.end();
    trace("");
  }

  @Override
  public void onFailure(String streamId, Throwable cause) {
    if (arrivedChunks == answer.chunks()) {
      // The connection was lost after the last byte: the data is complete.
      onComplete(streamId);
    } else {
      fail(asIOException(cause));
    }
  }

  /** Spark's transport reports its own refusals as runtime exceptions with a stack trace. */
  private static IOException asIOException(Throwable cause) {
    if (cause instanceof IOException io) {
      return io;
    }
    String message = cause.getMessage() == null ? cause.toString() : cause.getMessage();
    return new WireException(message.lines().findFirst().orElse(message));
  }

  private void fail(Throwable cause) {
    synchronized (this) {
      if (failure == null && !ended) {
        failedAt = System.nanoTime();
        failure = cause;
        ended = true;
        rate.end();
        trace(String.valueOf(cause.getMessage()));
      }
    }
    signal.accept(this);
  }

  /** Writes the event of this request, once, with the chunks that have arrived. */
  @GuardedBy("this")
  private void trace(String failed) {
    Fetch event = traced;
    if (event == null) {
      return;
    }
    traced = null;
    BlocksOpened opened = answer;
    if (opened != null) {
      int arrived = arrivedChunks;
      event.blocks = opened.blocks(arrived);
      event.bytes = opened.table().totalBytes(arrived);
      event.sentBytes = opened.table().totalSentBytes(arrived);
      event.stream = opened.stream().toString();
    }
    event.failure = failed;
    event.commit();
  }

  /** Thrown if a peer refuses a request. The message has its reason. */
  static final class RefusedException extends IOException {
    private static final long serialVersionUID = 1L;

    private final int retryAfterMillis;

    /**
     * Creates an exception.
     *
     * @param retryAfterMillis delay before a retry; 0 for no retry
     */
    RefusedException(String reason, int retryAfterMillis) {
      super(reason);
      this.retryAfterMillis = retryAfterMillis;
    }

    int retryAfterMillis() {
      return retryAfterMillis;
    }
  }
}
