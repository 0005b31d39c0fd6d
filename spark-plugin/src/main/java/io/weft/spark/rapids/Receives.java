package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.BounceBuffer;
import com.nvidia.spark.rapids.shuffle.BufferReceiveState;
import com.nvidia.spark.rapids.shuffle.PendingTransferRequest;
import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import com.nvidia.spark.rapids.shuffle.TransportBuffer;
import io.weft.spark.rapids.ControlMessage.Announcement;
import io.weft.spark.rapids.ControlMessage.Refusal;
import io.weft.spark.rapids.Throttle.InflightBudget;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * The tickets of this executor as a client. Finds the ticket of an announced block, waits for its
 * bounce buffer, and passes the block or the failure to spark-rapids' client. Thread-safe.
 */
final class Receives {
  private static final Logger LOG = LoggerFactory.getLogger(Receives.class);

  /** Set on the throttle's thread. */
  private static final ThreadLocal<ReceiveTicket> ISSUING = new ThreadLocal<>();

  private final EventThread events;
  private final Executor waits;
  private final CopyThread copies;
  private final InflightBudget budget;
  private final LongFunction<Runnable> holds;
  private final Runnable freed;
  private final AtomicLong ids = new AtomicLong();
  private final Map<Long, ReceiveTicket> open = new ConcurrentHashMap<>();

  /**
   * Creates an object without tickets.
   *
   * @param waits runs waits for free bounce buffers
   * @param holds holds the bounce buffer at an address, so that it is not reused
   * @param freed run when bytes return to the budget
   */
  Receives(
      EventThread events,
      Executor waits,
      CopyThread copies,
      InflightBudget budget,
      LongFunction<Runnable> holds,
      Runnable freed) {
    this.events = events;
    this.waits = waits;
    this.copies = copies;
    this.budget = budget;
    this.holds = holds;
    this.freed = freed;
  }

  /**
   * Requests tables from a server. Called by the throttle.
   *
   * @param bounce buffer for the tables; closed at the end of the ticket
   * @param bytes of all tables, which were taken from the budget
   */
  void issue(
      RapidsShuffleClient client,
      List<PendingTransferRequest> requests,
      BounceBuffer bounce,
      long bytes) {
    ClientLink link = (ClientLink) client.connection();
    ReceiveTicket ticket = new ReceiveTicket(ids.incrementAndGet(), link, client, bytes);
    BufferReceiveState state =
        new BufferReceiveState(
            ticket.id(),
            bounce,
            CollectionConverters.asScala(requests).toList(),
            () -> {
              closed(ticket);
              return BoxedUnit.UNIT;
            },
            BufferReceiveState.$lessinit$greater$default$5());
    ticket.begin(state);
    open.put(ticket.id(), ticket);
    ISSUING.set(ticket);
    try {
      client.issueBufferReceives(state);
    } finally {
      ISSUING.remove();
    }
  }

  /** The ticket that this thread issues; null if none. */
  ReceiveTicket issuing() {
    return ISSUING.get();
  }

  /** The state was closed, on a thread of spark-rapids. */
  private void closed(ReceiveTicket ticket) {
    ticket.close();
    open.remove(ticket.id());
    giveBack(ticket.rest());
  }

  /** A client has a complete table. Called on the thread that copied it. */
  void tableArrived(long bytes) {
    ReceiveTicket ticket = copies.running();
    giveBack(ticket == null ? bytes : ticket.arrived(bytes));
  }

  private void giveBack(long bytes) {
    if (bytes > 0) {
      budget.giveBack(bytes);
      freed.run();
    }
  }

  /** On the event thread: a server has a block. */
  void announced(ClientLink link, Announcement block) {
    ReceiveTicket ticket = open.get(block.header());
    if (ticket == null || ticket.link() != link || ticket.isOver()) {
      String reason = "executor %d does not wait for this block (any more)".formatted(link.own());
      link.send(new Refusal(false, block.send(), reason));
      return;
    }
    ticket.progress();
    try {
      waits.execute(() -> awaitBuffer(ticket, block));
    } catch (RejectedExecutionException e) {
      refuse(ticket, block, "the transport was closed");
    }
  }

  private void awaitBuffer(ReceiveTicket ticket, Announcement block) {
    try {
      ticket
          .state()
          .getBufferWhenReady(
              buffer -> {
                boolean unused = events.execute(() -> grant(ticket, block, buffer));
                return BoxedUnit.UNIT;
              },
              block.bytes());
    } catch (RuntimeException e) {
      boolean unused = events.execute(() -> refuse(ticket, block, tooLarge(ticket, block, e)));
    }
  }

  private static String tooLarge(ReceiveTicket ticket, Announcement block, RuntimeException cause) {
    return ("executor %d cannot take %d bytes (%s); are"
            + " spark.rapids.shuffle.ucx.bounceBuffers.* the same on both executors?")
        .formatted(ticket.link().own(), block.bytes(), cause.getMessage());
  }

  private void refuse(ReceiveTicket ticket, Announcement block, String reason) {
    ticket.link().send(new Refusal(false, block.send(), reason));
    fail(ticket, reason);
  }

  private void grant(ReceiveTicket ticket, Announcement block, TransportBuffer buffer) {
    if (ticket.isOver() || ticket.link().ended() != null) {
      refuse(ticket, block, "the tables are not needed any more");
      return;
    }
    ticket.progress();
    Runnable release = holds.apply(buffer.getAddress());
    ticket
        .link()
        .grant(
            block,
            buffer.getAddress(),
            failure -> {
              release.run();
              passed(ticket, block, failure);
            });
  }

  private void passed(ReceiveTicket ticket, Announcement block, Throwable failure) {
    boolean unused =
        events.execute(
            () -> {
              if (failure == null) {
                arrived(ticket, block);
              } else {
                fail(ticket, String.valueOf(failure.getMessage()));
              }
            });
  }

  private void arrived(ReceiveTicket ticket, Announcement block) {
    if (!ticket.isOver()) {
      ticket.progress();
      receive(ticket).succeed(null, 0, block.bytes());
    }
  }

  /** On the event thread: fails a ticket. The client notifies its tasks and closes its blocks. */
  void fail(ReceiveTicket ticket, String reason) {
    if (ticket.end()) {
      receive(ticket).fail(reason);
    }
  }

  /** The transaction of one block. */
  private RapidsTransaction receive(ReceiveTicket ticket) {
    ClientLink link = ticket.link();
    return RapidsTransaction.begin(
        "receiving tables of executor %d at executor %d".formatted(link.peer(), link.own()),
        link.peer(),
        ticket.id(),
        transaction -> {
          try {
            copies.submitFor(
                ticket, () -> ticket.client().handleBufferReceive(transaction, ticket.state()));
          } catch (RejectedExecutionException e) {
            LOG.debug("The threads of the client have ended before {}", transaction, e);
            ticket.state().close();
          }
        });
  }

  /** On the event thread: ends all tickets of a connection. */
  void failAll(ClientLink link, String reason) {
    for (ReceiveTicket ticket : open.values()) {
      if (ticket.link() == link) {
        fail(ticket, reason);
      }
    }
  }

  /**
   * The thread on which spark-rapids' clients copy blocks out of bounce buffers, one after the
   * other. It knows the ticket of the task that runs, so that reports of the client can be assigned
   * to the ticket. Thread-safe.
   */
  static final class CopyThread implements Executor {
    private static final ThreadLocal<ReceiveTicket> SUBMITTING = new ThreadLocal<>();
    private static final ThreadLocal<ReceiveTicket> RUNNING = new ThreadLocal<>();

    private final Executor thread;

    CopyThread(Executor thread) {
      this.thread = thread;
    }

    /** Assigns the tasks that this thread submits meanwhile to the ticket. */
    void submitFor(ReceiveTicket ticket, Runnable submission) {
      SUBMITTING.set(ticket);
      try {
        submission.run();
      } finally {
        SUBMITTING.remove();
      }
    }

    /** The ticket of the task that this thread runs; null if none. */
    ReceiveTicket running() {
      return RUNNING.get();
    }

    @Override
    public void execute(Runnable task) {
      ReceiveTicket ticket = SUBMITTING.get();
      thread.execute(() -> run(task, ticket));
    }

    /** Runs a task, unless its ticket is closed: then there is no receiver for a late failure. */
    private void run(Runnable task, ReceiveTicket ticket) {
      if (ticket != null && ticket.isClosed()) {
        return;
      }
      RUNNING.set(ticket);
      try {
        task.run();
      } finally {
        RUNNING.remove();
      }
    }
  }

  /**
   * One batch of tables that a client requests from a server, from the request to the last block.
   * Thread-safe.
   */
  static final class ReceiveTicket {
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
      boolean first = !over;
      over = true;
      return first;
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
}
