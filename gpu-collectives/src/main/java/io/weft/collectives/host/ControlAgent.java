package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.FrameChannel;
import io.weft.device.Deadline;
import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread of a rank that exchanges control messages with ranks of other hosts, even while no
 * operation runs. It receives failures and closes, and answers what this rank waits for. It moves
 * no data.
 *
 * <p>Thread-safe. {@link #close} ends the thread and closes the connections.
 */
final class ControlAgent implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ControlAgent.class);
  private static final Duration GOODBYE = Duration.ofSeconds(1);
  private static final int FLUSH_MILLIS = 10;
  private static final Duration END = Duration.ofSeconds(10);
  private static final long JOIN_MILLIS = 100;

  private final Selector selector;
  private final List<ControlPeer> peers;
  private final Thread thread;
  private volatile Supplier<Optional<WaitStatus>> waiting = Optional::empty;
  private volatile Consumer<CollectiveException> adopt = cause -> {};
  private volatile Deadline goodbye;

  /** Creates an agent, which owns the connections from now on; {@link #start} starts its thread. */
  ControlAgent(UniqueId id, int rank, List<ControlPeer> peers) throws IOException {
    this.selector = Selector.open();
    this.peers = List.copyOf(peers);
    this.thread = new Thread(this::run, "weft-agent-" + id + "-" + rank);
    this.thread.setDaemon(true);
  }

  /**
   * Starts to send and receive.
   *
   * @param ownWaiting what this rank waits for
   * @param adoptFailure receives a failure that another rank reports
   */
  void start(Supplier<Optional<WaitStatus>> ownWaiting, Consumer<CollectiveException> adoptFailure)
      throws IOException {
    waiting = ownWaiting;
    adopt = adoptFailure;
    for (ControlPeer peer : peers) {
      var key = peer.frames().channel().register(selector, SelectionKey.OP_READ, peer);
      LOG.trace("{} listens to rank {} through {}", thread.getName(), peer.rank(), key);
    }
    thread.start();
  }

  /** Makes the thread send the queued messages. */
  void wake() {
    selector.wakeup();
  }

  private void run() {
    try {
      Deadline end;
      boolean flushed;
      do {
        end = goodbye;
        int unused = selector.select(end == null ? 0 : FLUSH_MILLIS);
        selector.selectedKeys().clear();
        flushed = true;
        for (ControlPeer peer : peers) {
          flushed &= serve(peer);
        }
        // The last round began after close was called, so messages queued before it have been sent.
      } while (end == null || !(flushed || end.expired()));
    } catch (IOException | RuntimeException e) {
      LOG.error("{} ends: failures are no longer exchanged with other hosts", thread.getName(), e);
    }
  }

  /** Returns whether the send queue is empty. */
  private boolean serve(ControlPeer peer) {
    SelectionKey key = peer.frames().channel().keyFor(selector);
    if (key == null || !key.isValid()) {
      return true;
    }
    try {
      receive(peer);
      boolean flushed = peer.frames().flush();
      key.interestOps(
          flushed ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE);
      return flushed;
    } catch (IOException e) {
      peer.ended(String.valueOf(e.getMessage()));
      key.cancel();
      return true;
    }
  }

  private void receive(ControlPeer peer) throws IOException {
    FrameChannel frames = peer.frames();
    for (Optional<byte[]> next = frames.poll(); next.isPresent(); next = frames.poll()) {
      peer.receive(next.get(), waiting.get()).ifPresent(adopt);
    }
  }

  /**
   * Waits for the thread to end, because it uses the resources that are released next. An interrupt
   * is restored afterwards.
   */
  private void awaitEnd() {
    long end = System.nanoTime() + END.toNanos();
    boolean interrupted = Thread.interrupted();
    while (thread.isAlive() && System.nanoTime() - end < 0) {
      try {
        thread.join(JOIN_MILLIS);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Sends the queued messages within a second, and ends. No request is sent and no failure adopted
   * afterwards.
   */
  @Override
  public void close() throws IOException {
    goodbye = Deadline.after(GOODBYE);
    selector.wakeup();
    awaitEnd();
    List<IOException> failures = new ArrayList<>();
    for (ControlPeer peer : peers) {
      try {
        peer.frames().close();
      } catch (IOException e) {
        failures.add(e);
      }
    }
    selector.close();
    if (!failures.isEmpty()) {
      throw failures.get(0);
    }
  }
}
