package io.weft.spark.rapids.data;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.crosshost.TransferException;
import io.weft.crosshost.wire.TransferWire;
import io.weft.spark.rapids.control.ControlMessage.Meet;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One end of the way that a connection's data takes, from the server to the client. Both ends queue
 * the same passages in the same order and each runs them one after the other. When one fails, the
 * communicator is given up by both ends and the lane's epoch is over: passages of that epoch fail,
 * and those of the next one meet anew. So no end ever waits for a passage that the other dropped.
 *
 * <p>Thread-safe. Every passage ends, at the latest with the deadline of the communicator.
 */
public final class DataLane implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DataLane.class);
  private static final int KEEP_ALIVE_SECONDS = 30;

  /** More than a meeting has rounds. */
  private static final int MOST_EARLY = 32;

  private final LaneParts parts;
  private final String ends;
  private final int rank;
  private final Consumer<Meet> out;
  private final ThreadPoolExecutor thread;
  private final Object lock = new Object();

  /** Under the lock. */
  private LaneMeeting meeting;

  /** What the other end has said of a meeting that this end does not know of yet. */
  private final List<Meet> early = new ArrayList<>();

  private long over;
  private String whyOver = "";
  private boolean closed;
  private TransferWire wire;

  /** For the lane's thread. */
  private Communicator communicator;

  private long wireEpoch;

  /**
   * A lane that has met nobody.
   *
   * @param ends both executors, in words
   * @param rank 0 for the client, who receives, 1 for the server
   * @param name of its thread
   * @param out the way for messages of meetings to the other end
   */
  DataLane(LaneParts parts, String ends, int rank, String name, Consumer<Meet> out) {
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

  /** Puts a passage behind the others. */
  public void submit(Passage passage) {
    synchronized (lock) {
      if (meeting == null || meeting.epoch() < passage.epoch()) {
        meeting = new LaneMeeting(passage.meeting(), rank, passage.epoch(), ends, out);
        hearEarly();
        if (closed) {
          meeting.fail(whyOver);
        }
      }
    }
    try {
      thread.execute(() -> run(passage));
    } catch (RejectedExecutionException e) {
      passage.ended().accept(isOver());
    }
  }

  /** Under the lock. */
  private void hearEarly() {
    for (Meet message : early) {
      if (message.epoch() == meeting.epoch()) {
        meeting.hear(message.round(), message.payload());
      }
    }
    early.removeIf(message -> message.epoch() <= meeting.epoch());
  }

  /** A message of a meeting has come; it may be one that this end has yet to hear of. */
  public void hear(Meet message) {
    LaneMeeting now;
    synchronized (lock) {
      now = meeting;
      if (now == null || now.epoch() < message.epoch()) {
        early.removeIf(older -> older.epoch() < message.epoch());
        if (early.size() < MOST_EARLY) {
          early.add(message);
        }
        return;
      }
    }
    if (now.epoch() == message.epoch()) {
      now.hear(message.round(), message.payload());
    }
  }

  /** Whether passages of this epoch fail. */
  public boolean isOver(long epoch) {
    synchronized (lock) {
      return closed || epoch <= over;
    }
  }

  /** An epoch ends well, behind its passages. Later passages have to be of a later one. */
  public void retire(long epoch) {
    try {
      thread.execute(
          () -> {
            if (end(epoch, "the communicator was not used for long")) {
              release();
            }
          });
    } catch (RejectedExecutionException e) {
      LOG.debug("The data lane of {} was closed before it was retired", ends);
    }
  }

  private void run(Passage passage) {
    Throwable failure = null;
    try {
      TransferWire open = open(passage);
      List<TypedBuffer> block = List.of(passage.buffer());
      open.move(passage.sends() ? block : List.of(), passage.sends() ? List.of() : block);
    } catch (RuntimeException | Error e) {
      failure = e;
      breakOff(passage.epoch(), e);
    }
    passage.ended().accept(failure);
  }

  private TransferWire open(Passage passage) {
    LaneMeeting where;
    synchronized (lock) {
      if (closed || passage.epoch() <= over) {
        throw isOver();
      }
      if (wire != null && wireEpoch == passage.epoch()) {
        return wire;
      }
      where = meeting;
    }
    release();
    communicator = parts.communicators().create(where, parts.options());
    wireEpoch = passage.epoch();
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
      return new TransferException("the data lane of " + ends + " has ended: " + whyOver);
    }
  }

  /** On the lane's thread. */
  private void breakOff(long epoch, Throwable cause) {
    if (end(epoch, String.valueOf(cause.getMessage()))) {
      LOG.warn("The data lane of {} meets anew before its next block: {}", ends, cause.toString());
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

  /** Whether this was news. */
  private boolean end(long epoch, String reason) {
    synchronized (lock) {
      if (epoch <= over) {
        return false;
      }
      over = epoch;
      whyOver = closed ? whyOver : reason;
      return true;
    }
  }

  /** On the lane's thread: the communicator is needed no more. */
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

  /** Fails all passages, those that run at once, and ends the thread; does not wait for it. */
  public void close(String reason) {
    TransferWire running;
    synchronized (lock) {
      if (closed) {
        return;
      }
      closed = true;
      whyOver = reason;
      running = wire;
      if (meeting != null) {
        meeting.fail(reason);
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

  /** Whether it was closed and nothing of it runs any more. */
  boolean hasEnded() {
    return thread.isTerminated();
  }

  /** Waits until it has ended, which it does not before it is closed. */
  boolean awaitEnd(long patienceNanos) throws InterruptedException {
    return thread.awaitTermination(patienceNanos, TimeUnit.NANOSECONDS);
  }
}
