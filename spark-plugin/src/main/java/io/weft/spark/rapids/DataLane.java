package io.weft.spark.rapids;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import io.weft.spark.rapids.ControlMessage.BootstrapRound;
import io.weft.spark.rapids.LaneSet.LaneParts;
import io.weft.transfers.TransferException;
import io.weft.transfers.TransferWire;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One end of the data path of a connection, from the server to the client. Both ends queue the same
 * moves in the same order and run them one after the other. After a failure both ends give up the
 * communicator and the lane's epoch ends: moves of that epoch fail, and the next epoch creates a
 * new communicator. So no end waits for a move that the other has dropped.
 *
 * <p>Thread-safe. Every move ends, at the latest at the deadline of the communicator.
 */
final class DataLane implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DataLane.class);
  private static final int KEEP_ALIVE_SECONDS = 30;

  /** More than a bootstrap has rounds. */
  private static final int MAX_EARLY = 32;

  private final LaneParts parts;
  private final String ends;
  private final int rank;
  private final Consumer<BootstrapRound> out;
  private final ThreadPoolExecutor thread;
  private final Object lock = new Object();

  /** Guarded by the lock. */
  private LaneBootstrap bootstrap;

  /** Bootstrap messages of the other end for an epoch that this end has not started yet. */
  private final List<BootstrapRound> earlyMessages = new ArrayList<>();

  private long endedEpoch;
  private String endReason = "";
  private boolean closed;
  private TransferWire wire;

  /** For the lane's thread. */
  private Communicator communicator;

  private long wireEpoch;

  /**
   * Creates a lane without a communicator.
   *
   * @param ends both executors, for messages
   * @param rank 0 for the client, which receives, 1 for the server
   * @param name of its thread
   * @param out sends bootstrap messages to the other end
   */
  DataLane(LaneParts parts, String ends, int rank, String name, Consumer<BootstrapRound> out) {
    this.parts = parts;
    this.ends = ends;
    this.rank = rank;
    this.out = out;
    this.thread =
        new ThreadPoolExecutor(
            1,
            1,
            KEEP_ALIVE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread made = new Thread(task, name);
              made.setDaemon(true);
              return made;
            });
    thread.allowCoreThreadTimeOut(true);
  }

  /** Queues a move. */
  public void submit(BlockMove move) {
    synchronized (lock) {
      if (bootstrap == null || bootstrap.epoch() < move.epoch()) {
        bootstrap = new LaneBootstrap(move.communicatorId(), rank, move.epoch(), ends, out);
        takeEarlyMessages();
        if (closed) {
          bootstrap.fail(endReason);
        }
      }
    }
    try {
      thread.execute(() -> run(move));
    } catch (RejectedExecutionException e) {
      move.ended().accept(isOver());
    }
  }

  /** The caller holds the lock. */
  private void takeEarlyMessages() {
    for (BootstrapRound message : earlyMessages) {
      if (message.epoch() == bootstrap.epoch()) {
        bootstrap.receive(message.round(), message.payload());
      }
    }
    earlyMessages.removeIf(message -> message.epoch() <= bootstrap.epoch());
  }

  /** Takes a bootstrap message, which may be for an epoch that this end has not started yet. */
  public void receive(BootstrapRound message) {
    LaneBootstrap now;
    synchronized (lock) {
      now = bootstrap;
      if (now == null || now.epoch() < message.epoch()) {
        earlyMessages.removeIf(older -> older.epoch() < message.epoch());
        if (earlyMessages.size() < MAX_EARLY) {
          earlyMessages.add(message);
        }
        return;
      }
    }
    if (now.epoch() == message.epoch()) {
      now.receive(message.round(), message.payload());
    }
  }

  /** Whether moves of this epoch fail. */
  public boolean isOver(long epoch) {
    synchronized (lock) {
      return closed || epoch <= endedEpoch;
    }
  }

  /** Ends an epoch after its moves. Later moves must have a later epoch. */
  public void retire(long epoch) {
    try {
      thread.execute(
          () -> {
            if (end(epoch, "the communicator was idle")) {
              release();
            }
          });
    } catch (RejectedExecutionException e) {
      LOG.debug("The data lane of {} was closed before it was retired", ends);
    }
  }

  private void run(BlockMove move) {
    Throwable failure = null;
    try {
      TransferWire open = open(move);
      List<TypedBuffer> blocks = move.buffers();
      open.move(move.sends() ? blocks : List.of(), move.sends() ? List.of() : blocks);
    } catch (RuntimeException | Error e) {
      failure = e;
      breakOff(move.epoch(), e);
    }
    move.ended().accept(failure);
  }

  private TransferWire open(BlockMove move) {
    LaneBootstrap current;
    synchronized (lock) {
      if (closed || move.epoch() <= endedEpoch) {
        throw isOver();
      }
      if (wire != null && wireEpoch == move.epoch()) {
        return wire;
      }
      current = bootstrap;
    }
    release();
    communicator = parts.communicators().create(current, parts.options());
    wireEpoch = move.epoch();
    TransferWire made = parts.wires().open(communicator);
    synchronized (lock) {
      wire = made;
      if (closed) {
        throw isOver();
      }
    }
    return made;
  }

  private TransferException isOver() {
    synchronized (lock) {
      return new TransferException("the data lane of " + ends + " has ended: " + endReason);
    }
  }

  /** On the lane's thread. */
  private void breakOff(long epoch, Throwable cause) {
    if (end(epoch, String.valueOf(cause.getMessage()))) {
      LOG.warn(
          "The data lane of {} needs a new communicator for its next block: {}",
          ends,
          cause.toString());
      TransferWire broken;
      synchronized (lock) {
        broken = wire;
      }
      if (broken != null) {
        broken.abort(ends + " gave up: " + cause.getMessage());
      }
      release();
    }
  }

  /** Ends an epoch. Returns false if it had ended before. */
  private boolean end(long epoch, String reason) {
    synchronized (lock) {
      if (epoch <= endedEpoch) {
        return false;
      }
      endedEpoch = epoch;
      endReason = closed ? endReason : reason;
      return true;
    }
  }

  /** On the lane's thread: closes the wire and the communicator. */
  private void release() {
    TransferWire last;
    synchronized (lock) {
      last = wire;
      wire = null;
    }
    Communicator lastCommunicator = communicator;
    communicator = null;
    if (last != null) {
      last.close();
    }
    if (lastCommunicator != null) {
      lastCommunicator.close();
    }
  }

  /** Fails all moves, aborts the one that runs, and ends the thread. Does not wait for it. */
  public void close(String reason) {
    TransferWire running;
    synchronized (lock) {
      if (closed) {
        return;
      }
      closed = true;
      endReason = reason;
      running = wire;
      if (bootstrap != null) {
        bootstrap.fail(reason);
      }
    }
    if (running != null) {
      running.abort(ends + ": " + reason);
    }
    thread.execute(this::release);
    thread.shutdown();
  }

  @Override
  public void close() {
    close("it was closed");
  }

  /** Whether it was closed and its thread has ended. */
  boolean hasEnded() {
    return thread.isTerminated();
  }

  /** Waits for the end of its thread, after it was closed. */
  boolean awaitEnd(long timeoutNanos) throws InterruptedException {
    return thread.awaitTermination(timeoutNanos, TimeUnit.NANOSECONDS);
  }

  /**
   * The bootstrap of the two ends of a lane. The message of a round goes to the other end over
   * their connection. The client is rank 0, the server rank 1. Thread-safe.
   */
  static final class LaneBootstrap implements Bootstrap {
    private final UniqueId id;
    private final int rank;
    private final long epoch;
    private final String ends;
    private final Consumer<BootstrapRound> out;
    private final Map<String, byte[]> received = new HashMap<>();
    private String failure;

    /**
     * Creates one end.
     *
     * @param ends both ends, for messages
     * @param out sends to the other end
     */
    LaneBootstrap(UniqueId id, int rank, long epoch, String ends, Consumer<BootstrapRound> out) {
      this.id = id;
      this.rank = rank;
      this.epoch = epoch;
      this.ends = ends;
      this.out = out;
    }

    long epoch() {
      return epoch;
    }

    /** Takes the other end's message of a round. */
    synchronized void receive(String round, byte[] message) {
      received.put(round, message);
      notifyAll();
    }

    /** Fails waiting and later rounds. */
    synchronized void fail(String reason) {
      failure = reason;
      notifyAll();
    }

    @Override
    public UniqueId id() {
      return id;
    }

    @Override
    public int rank() {
      return rank;
    }

    @Override
    public int nranks() {
      return 2;
    }

    @Override
    public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
      out.accept(new BootstrapRound(epoch, round, mine));
      byte[] theirs = await(round, deadline);
      return rank == 0 ? List.of(mine, theirs) : List.of(theirs, mine);
    }

    private synchronized byte[] await(String round, Deadline deadline) {
      try {
        while (failure == null && !received.containsKey(round) && !deadline.expired()) {
          TimeUnit.NANOSECONDS.timedWait(this, Math.max(1, deadline.remainingNanos()));
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw failed(Kind.ABORTED, "interrupted in round " + round);
      }
      if (received.containsKey(round)) {
        return received.remove(round);
      }
      if (failure != null) {
        throw failed(Kind.ABORTED, failure);
      }
      throw failed(
          Kind.TIMEOUT, "the other end did not answer in round " + round + " within " + deadline);
    }

    private CollectiveException failed(Kind kind, String reason) {
      return new CollectiveException(
          kind, List.of(1 - rank), "the bootstrap of " + ends + " failed: " + reason);
    }

    @Override
    public void close() {
      // Nothing to free. The lane drops the bootstrap, and late messages with it.
    }
  }

  /**
   * The move of blocks through a data lane, as one group.
   *
   * @param epoch of the lane
   * @param communicatorId id of the epoch's communicator
   * @param buffers the blocks in GPU memory, in the same order at both ends; none is empty
   * @param sends whether this end sends
   * @param ended run once when the lane no longer touches the buffers, with the failure or null;
   *     runs on the lane's thread or the thread that closes the lane
   */
  record BlockMove(
      long epoch,
      UniqueId communicatorId,
      List<TypedBuffer> buffers,
      boolean sends,
      Consumer<Throwable> ended) {}
}
