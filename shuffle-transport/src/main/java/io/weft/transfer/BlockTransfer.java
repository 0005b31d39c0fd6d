package io.weft.transfer;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.weft.encryption.SealingKey;
import io.weft.integrity.ChecksumException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.tcp.PeerConnection;
import io.weft.tcp.StreamReceiver;
import io.weft.tcp.Turn;
import io.weft.wire.BlocksOpened;
import io.weft.wire.BlocksRefused;
import io.weft.wire.DamagedMessageException;
import io.weft.wire.OpenBlocks;
import io.weft.wire.StreamId;
import io.weft.wire.WireException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.apache.spark.network.client.RpcResponseCallback;

/**
 * One request to a peer and the memory its answer goes to, which is set aside before the request is
 * sent: nothing is allocated while bytes arrive.
 *
 * <p>The reader's thread starts it, takes its chunks and closes it; connections call it on their
 * event loops. The memory is copied to under the same lock that {@link #close()} takes, so it can
 * be freed at once, and what arrives later is dropped; only while it is lent to the connection for
 * a read does freeing it wait for its return.
 */
final class BlockTransfer implements RpcResponseCallback, StreamReceiver {
  private final TransferPlan plan;
  private final OpenBlocks message;
  private final SharedArena arena;
  private final Consumer<BlockTransfer> signal;
  private final Optional<SealingKey> key;

  private final long patienceNanos;

  private volatile PeerConnection connection;
  private volatile long lastProgress;

  /** Of what was asked for last, once something was. */
  private volatile Turn turn;

  private volatile BlocksOpened answer;
  private volatile Throwable failure;
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
  private ReceiveCursor cursor;

  /**
   * Takes the extent over.
   *
   * @param message the plan's
   * @param key of chunks that come sealed
   * @param signal told, on any thread, whenever there is something new to be seen
   * @param startedAt when the first attempt at these blocks made progress last, as {@link
   *     System#nanoTime()} has it
   * @param patience how long nothing may come
   */
  BlockTransfer(
      TransferPlan plan,
      OpenBlocks message,
      SharedArena arena,
      Extent extent,
      Optional<SealingKey> key,
      Consumer<BlockTransfer> signal,
      long startedAt,
      Duration patience) {
    this.plan = plan;
    this.arena = arena;
    this.extent = extent;
    this.target = arena.view(extent);
    this.message = message;
    this.key = key;
    this.signal = signal;
    this.lastProgress = startedAt;
    this.patienceNanos = patience.toNanos();
  }

  /** Sends the request as soon as there is a connection. */
  void start(CompletableFuture<PeerConnection> connecting) {
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
      connected.open(message, newTurn(), this);
    } catch (RuntimeException e) {
      // As when its event loop is being shut down.
      fail(new IOException("the request cannot be sent: " + e, e));
    }
  }

  private Turn newTurn() {
    Turn made = new Turn(later(lastProgress, connection.lastMoved()), patienceNanos);
    turn = made;
    return made;
  }

  TransferPlan plan() {
    return plan;
  }

  /**
   * When something came of it last, or of what was asked of its connection before: transfers of all
   * readers queue there. Whoever is refused has no place in that queue, and waits as long as the
   * connection moves at all.
   */
  long lastProgress() {
    long own = lastProgress;
    Turn asked = turn;
    if (asked == null) {
      return own;
    }
    return later(own, isRefused() ? connection.lastMoved() : asked.lastMoved());
  }

  private static long later(long one, long other) {
    return other - one > 0 ? other : one;
  }

  private boolean isRefused() {
    return failure instanceof RefusedException;
  }

  /** Whether its connection has brought what was asked for later, but not this. */
  boolean isOvertaken() {
    Turn asked = turn;
    return asked != null && connection.lastMoved() - asked.lastMoved() > 0;
  }

  /** The answer, or null as long as there is none. */
  BlocksOpened answer() {
    return answer;
  }

  /** How many chunks are whole. */
  int arrivedChunks() {
    return arrivedChunks;
  }

  /** Whether nothing more will arrive: all of it has, or it failed. */
  boolean isEnded() {
    return ended;
  }

  /** What went wrong, or null. */
  Throwable failure() {
    return failure;
  }

  /** Position in the plan of the request that the peer refused, or -1. */
  int refusedRange() {
    return refusedRange;
  }

  /** Whether asking once more may help: no connection, a lost one, or bytes that were damaged. */
  boolean isRepeatable() {
    Throwable cause = failure;
    boolean answered = cause instanceof WireException || cause instanceof RefusedException;
    return (cause instanceof IOException && !answered) || isDamaged();
  }

  /** Whether something arrived that is not what was sent. */
  boolean isDamaged() {
    return failure instanceof ChecksumException || failure instanceof DamagedMessageException;
  }

  /** How long the peer asks to wait before it is asked again; 0 if it does not. */
  long retryAfterMillis() {
    return failure instanceof RefusedException refused ? refused.retryAfterMillis() : 0;
  }

  /** The connection, or null before there is one. */
  PeerConnection connection() {
    return connection;
  }

  /** Bytes of memory held now. */
  synchronized long heldBytes() {
    return extent == null ? 0 : extent.length();
  }

  /** Where a chunk lies; only once it has arrived and until {@link #close()}. */
  synchronized long address(int chunk) {
    return extent.address() + cursor.offset(chunk);
  }

  /** Gives back the memory that the answer does not need. */
  synchronized void trim() {
    if (extent != null && cursor != null && cursor.end() > 0) {
      extent = arena.trim(extent, cursor.end());
    }
  }

  /** Gives the memory back; what arrives later is dropped. Can be repeated. */
  synchronized void close() {
    closed = true;
    ended = true;
    if (cursor != null) {
      cursor.close();
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
  public synchronized ByteBuffer room() {
    ByteBuffer room = ended ? null : cursor.room(target);
    loans += room == null ? 0 : 1;
    return room;
  }

  @Override
  public synchronized void roomReturned() {
    loans--;
    if (closed) {
      free();
    }
  }

  @Override
  public void onSuccess(ByteBuffer response) {
    try {
      if (BlocksRefused.isOne(response)) {
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
        // A second answer must not start all over.
        return;
      }
      wanted = !closed && failure == null && opened.chunks() > 0;
      if (failure == null) {
        cursor = new ReceiveCursor(opened, message.compression(), key);
        lastProgress = System.nanoTime();
        answer = opened;
        ended = ended || opened.chunks() == 0;
      }
    }
    if (wanted) {
      connection.receive(opened.stream(), newTurn(), this);
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
    lastProgress = System.nanoTime();
    boolean news = false;
    synchronized (this) {
      if (!closed && failure == null) {
        news = receive(streamId, data);
      }
    }
    if (news) {
      signal.accept(this);
    }
  }

  @GuardedBy("this")
  private boolean receive(String streamId, ByteBuffer data) {
    if (!expected().toString().equals(streamId)) {
      fail(new WireException("stream " + expected() + " was asked for, " + streamId + " came"));
      return false;
    }
    int before = arrivedChunks;
    try {
      cursor.receive(data, target);
    } catch (IOException e) {
      arrivedChunks = cursor.arrived();
      fail(e);
      return false;
    }
    arrivedChunks = cursor.arrived();
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
      ended = true;
      signal.accept(this);
    }
  }

  @Override
  public void onFailure(String streamId, Throwable cause) {
    if (arrivedChunks == answer.chunks()) {
      // The connection was lost behind the last byte: nothing is missing.
      onComplete(streamId);
    } else {
      fail(asIOException(cause));
    }
  }

  /** Spark's transport hands refusals of its own over as runtime exceptions with a stack trace. */
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
        failure = cause;
        ended = true;
      }
    }
    signal.accept(this);
  }
}
