package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.BufferReceiveState;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;

/**
 * One batch of tables that a client requests from a server, from the request to the last block.
 * Thread-safe.
 */
final class ReceiveTicket {
  private final long id;
  private final ClientLink link;
  private final RapidsShuffleClient client;
  private long bytesLeft;
  private BufferReceiveState state;
  private boolean over;
  private boolean closed;
  private volatile long progressNanos = System.nanoTime();

  /**
   * Creates a ticket without a receive state.
   *
   * @param bytes of all its tables, which were taken from the budget
   */
  ReceiveTicket(long id, ClientLink link, RapidsShuffleClient client, long bytes) {
    this.id = id;
    this.link = link;
    this.client = client;
    this.bytesLeft = bytes;
  }

  long id() {
    return id;
  }

  ClientLink link() {
    return link;
  }

  RapidsShuffleClient client() {
    return client;
  }

  synchronized void begin(BufferReceiveState made) {
    state = made;
  }

  synchronized BufferReceiveState state() {
    return state;
  }

  /** Ends the receives. Returns true for the first call. */
  synchronized boolean end() {
    boolean news = !over;
    over = true;
    return news;
  }

  /** Marks it as ended and its state as closed. */
  synchronized void close() {
    over = true;
    closed = true;
  }

  synchronized boolean isClosed() {
    return closed;
  }

  synchronized boolean isOver() {
    return over;
  }

  /** Counts a table that has arrived. Returns the bytes to give back to the budget. */
  synchronized long arrived(long bytes) {
    long charged = Math.min(bytes, bytesLeft);
    bytesLeft -= charged;
    return charged;
  }

  /** Takes the remaining bytes, to give back to the budget at the end. */
  synchronized long rest() {
    long rest = bytesLeft;
    bytesLeft = 0;
    return rest;
  }

  /** Notes progress, which extends the deadline. */
  void progress() {
    progressNanos = System.nanoTime();
  }

  long progressNanos() {
    return progressNanos;
  }
}
