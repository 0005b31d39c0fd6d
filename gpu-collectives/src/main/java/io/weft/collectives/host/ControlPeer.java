package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.FailureCodec;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.bootstrap.FrameChannel;
import io.weft.device.Deadline;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Optional;

/**
 * A rank of another host, as the control connection to its agent shows it. Messages:
 *
 * <pre>
 *   byte 1 | failure                     its communicator failed
 *   byte 2                               it has closed its communicator
 *   byte 3 | long request               what are you waiting for?
 *   byte 4 | long request               for no rank; or
 *   byte 4 | long request | int rank | long sequence | int code | int root | long count
 * </pre>
 *
 * <p>Thread-safe, except that only the agent flushes and receives.
 */
final class ControlPeer {
  static final int MAX_BYTES = 8192;

  private static final byte FAILED = 1;
  private static final byte CLOSED = 2;
  private static final byte ASK = 3;
  private static final byte ANSWER = 4;
  private static final int MAX_FAILURE_BYTES = MAX_BYTES - 1;
  private static final int ASK_BYTES = 9;
  private static final int STATUS_BYTES = 37;

  /** The known state of the other side. */
  enum State {
    OPEN,
    FAILED,
    CLOSED,
    /** The connection has ended without a message about it. */
    ENDED
  }

  private final int rank;
  private final int nranks;
  private final FrameChannel frames;
  private State state = State.OPEN;
  private Optional<CollectiveException> failure = Optional.empty();
  private String end = "";
  private long asked;
  private long askedNanos;
  private long answered;
  private Optional<WaitStatus> waiting = Optional.empty();

  /**
   * Creates the state of another rank.
   *
   * @param nranks of the communicator
   * @param frames the connection to its agent
   */
  ControlPeer(int rank, int nranks, FrameChannel frames) {
    this.rank = rank;
    this.nranks = nranks;
    this.frames = frames;
  }

  int rank() {
    return rank;
  }

  FrameChannel frames() {
    return frames;
  }

  void sendFailure(CollectiveException cause) {
    byte[] code = FailureCodec.encode(cause, MAX_FAILURE_BYTES);
    frames.send(ByteBuffer.allocate(1 + code.length).put(FAILED).put(code).array());
  }

  void sendClosed() {
    frames.send(new byte[] {CLOSED});
  }

  /** Asks what the other side waits for; the answer comes later. Returns the request's number. */
  synchronized long ask() {
    asked++;
    askedNanos = System.nanoTime();
    frames.send(ByteBuffer.allocate(ASK_BYTES).put(ASK).putLong(asked).array());
    return asked;
  }

  /** Asks unless the last request is recent. */
  synchronized boolean askAgain(long everyNanos) {
    if (asked > 0 && System.nanoTime() - askedNanos < everyNanos) {
      return false;
    }
    long unused = ask();
    return true;
  }

  /**
   * Handles a message of the other side.
   *
   * @param own what this rank waits for
   * @return a failure to adopt, if the message was one
   * @throws IOException when it is malformed or has impossible values; nothing was changed
   */
  Optional<CollectiveException> receive(byte[] message, Optional<WaitStatus> own)
      throws IOException {
    requireWhole(message);
    ByteBuffer in = ByteBuffer.wrap(message);
    switch (in.get()) {
      case FAILED -> {
        CollectiveException cause =
            FailureCodec.decode(Arrays.copyOfRange(message, 1, message.length));
        failed(cause);
        return Optional.of(cause);
      }
      case CLOSED -> become(State.CLOSED);
      case ASK -> answer(in.getLong(), own);
      case ANSWER -> answered(in);
      default -> throw damaged(message);
    }
    return Optional.empty();
  }

  private void requireWhole(byte[] message) throws IOException {
    int length = message.length;
    boolean whole =
        length > 0
            && switch (message[0]) {
              case FAILED -> true;
              case CLOSED -> length == 1;
              case ASK -> length == ASK_BYTES;
              case ANSWER -> length == ASK_BYTES || length == STATUS_BYTES;
              default -> false;
            };
    if (!whole) {
      throw damaged(message);
    }
  }

  private IOException damaged(byte[] message) {
    String kind = message.length == 0 ? "" : " of kind " + message[0];
    return new IOException(
        "rank "
            + rank
            + " sent "
            + message.length
            + " bytes"
            + kind
            + ", which are not a valid message");
  }

  private void answer(long request, Optional<WaitStatus> own) {
    ByteBuffer out =
        ByteBuffer.allocate(own.isPresent() ? STATUS_BYTES : ASK_BYTES)
            .put(ANSWER)
            .putLong(request);
    own.ifPresent(
        status ->
            out.putInt(status.rank())
                .putLong(status.sequence())
                .putInt(status.signature().code())
                .putInt(status.signature().root())
                .putLong(status.signature().count()));
    frames.send(out.array());
  }

  private void answered(ByteBuffer in) throws IOException {
    long request = in.getLong();
    Optional<WaitStatus> status = in.hasRemaining() ? Optional.of(status(in)) : Optional.empty();
    synchronized (this) {
      answered = request;
      waiting = status;
      notifyAll();
    }
  }

  private WaitStatus status(ByteBuffer in) throws IOException {
    int other = in.getInt();
    long sequence = in.getLong();
    Signature signature = new Signature(in.getInt(), in.getInt(), in.getLong());
    if (other < 0 || other >= nranks) {
      throw new IOException(
          "rank " + rank + " says that it waits for rank " + other + " of " + nranks);
    }
    return new WaitStatus(other, sequence, signature);
  }

  private synchronized void failed(CollectiveException cause) {
    failure = Optional.of(cause);
    become(State.FAILED);
  }

  /** The first state after OPEN is final. */
  private synchronized void become(State next) {
    if (state == State.OPEN) {
      state = next;
      notifyAll();
    }
  }

  /** The connection has ended. */
  synchronized void ended(String reason) {
    end = reason;
    become(State.ENDED);
  }

  synchronized State state() {
    return state;
  }

  /** The failure, in state FAILED. */
  synchronized Optional<CollectiveException> failure() {
    return failure;
  }

  /** How the connection ended, in state ENDED. */
  synchronized String end() {
    return end;
  }

  /** What it waited for at its last answer. */
  synchronized Optional<WaitStatus> waiting() {
    return waiting;
  }

  /** Whether it has answered a request, or has ended. */
  synchronized boolean hasAnswered(long request) {
    return state != State.OPEN || answered >= request;
  }

  /** Waits for the answer to a request, or for the end; returns whether one arrived. */
  synchronized boolean awaitAnswer(long request, Deadline deadline) {
    try {
      while (!hasAnswered(request)) {
        if (deadline.expired()) {
          return false;
        }
        wait(Math.max(1, deadline.remainingNanos() / 1_000_000L));
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
