package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.BufferReceiveState;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;

/**
 * What a client has asked of a server in one go, from the request to the last block. Thread-safe.
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
   * A ticket whose state is not made yet.
   *
   * @param bytes of all its tables, which the budget was charged with
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

  /** Nothing is received for it any more; whether that is news. */
  synchronized boolean end() {
    boolean news = !over;
    over = true;
    return news;
  }

  /** Its state was closed, and with it everything it has. */
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

  /** A table has arrived: how much the budget gets back for it. */
  synchronized long arrived(long bytes) {
    long charged = Math.min(bytes, bytesLeft);
    bytesLeft -= charged;
    return charged;
  }

  /** What the budget gets back at the end. */
  synchronized long rest() {
    long rest = bytesLeft;
    bytesLeft = 0;
    return rest;
  }

  /** Something has come. */
  void progress() {
    progressNanos = System.nanoTime();
  }

  long progressNanos() {
    return progressNanos;
  }
}
