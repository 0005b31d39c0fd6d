package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Pairs of tasks that exchange an array, are killed at any time, and run again with the same key or
 * with another one. An attempt that is not killed succeeds at both ends over a network without
 * faults, although earlier attempts may have left transfers. Used by one thread.
 */
final class FaultyRetries {
  private static final int MOST_ATTEMPTS = 4;
  private static final int[] LENGTHS = {1, 1000, 70_001};

  private final Executors executors;
  private final SplittableRandom random;
  private final int nodes;
  private final boolean faults;
  private final Duration timeout;
  private final List<ReceivedBuffer> received = new ArrayList<>();
  private int pairs;
  private int sameKey;
  private int otherKey;
  private int work;
  private long nextKey = 1_000_000;

  /** How often tasks ran: all attempts, and those that repeat one with its key or another one. */
  record Attempts(int all, int sameKey, int otherKey) {}

  /** How the attempts of a pair are numbered. */
  private enum Numbering {
    /** Both tasks run again in a new stage attempt. */
    STAGE_ATTEMPTS,
    /** Tasks run again in their stage attempt. */
    ONE_STAGE_ATTEMPT,
    /** The transfers are of no task, and no key is used again. */
    NONE
  }

  /** One end of an attempt. */
  private record End(DeviceTransfers transfers, Event event, ReceivedBuffer buffer) {
    boolean succeeded() {
      return event.state() == Event.State.COMPLETE;
    }

    boolean hasEnded() {
      return succeeded() || event.state() == Event.State.FAILED;
    }

    void kill() {
      transfers.withdraw("the task was killed");
    }
  }

  /** The two ends of one attempt, and what they transfer. */
  private record Attempt(
      int from, int to, BufferShape shape, long key, Numbering numbering, TransferAttempt attempt) {
    Attempt again(long otherKey) {
      TransferAttempt next =
          numbering == Numbering.STAGE_ATTEMPTS
              ? new TransferAttempt(attempt.work(), attempt.number() + 1)
              : attempt;
      return new Attempt(from, to, shape, otherKey, numbering, next);
    }
  }

  FaultyRetries(
      Executors executors, SplittableRandom random, int nodes, boolean faults, Duration timeout) {
    this.executors = executors;
    this.random = random;
    this.nodes = nodes;
    this.faults = faults;
    this.timeout = timeout;
  }

  /** Runs some pairs of tasks. */
  Attempts run() {
    pairs = 1 + random.nextInt(3);
    for (int i = 0; i < pairs; i++) {
      pair();
    }
    received.forEach(ReceivedBuffer::close);
    return new Attempts(pairs + sameKey + otherKey, sameKey, otherKey);
  }

  private void pair() {
    int from = random.nextInt(nodes);
    int to = (from + 1 + random.nextInt(nodes - 1)) % nodes;
    Numbering numbering = Numbering.values()[random.nextInt(Numbering.values().length)];
    boolean keepsKey = numbering != Numbering.NONE && random.nextBoolean();
    BufferShape shape = BufferShape.of(DataType.INT32, LENGTHS[random.nextInt(LENGTHS.length)]);
    Attempt attempt =
        new Attempt(
            from,
            to,
            shape,
            nextKey++,
            numbering,
            numbering == Numbering.NONE ? TransferAttempt.NONE : new TransferAttempt(work++, 0));
    for (int number = 1; !attempt(attempt, number < MOST_ATTEMPTS); number++) {
      if (number == MOST_ATTEMPTS) {
        return;
      }
      attempt = attempt.again(keepsKey ? attempt.key() : nextKey++);
      if (keepsKey) {
        sameKey++;
      } else {
        otherKey++;
      }
    }
  }

  /** Returns whether the array arrived. */
  private boolean attempt(Attempt attempt, boolean mayBeKilled) {
    boolean sendsFirst = random.nextBoolean();
    if (mayBeKilled && random.nextInt(3) == 0) {
      // The first end fails before the second one starts.
      End lost = start(attempt, sendsFirst);
      pause();
      // A task that does not learn of its death withdraws nothing.
      if (attempt.numbering() != Numbering.STAGE_ATTEMPTS || random.nextBoolean()) {
        lost.kill();
      }
      return false;
    }
    End first = start(attempt, sendsFirst);
    pause();
    boolean alone = mayBeKilled && attempt.numbering() != Numbering.NONE && random.nextInt(3) == 0;
    boolean secondWaits = random.nextBoolean();
    if (alone) {
      // Only this task runs again, and its peer may come before.
      first.kill();
      first = secondWaits ? null : start(attempt, sendsFirst);
    }
    pause();
    End second = start(attempt, !sendsFirst);
    if (first == null) {
      pause();
      first = start(attempt, sendsFirst);
    }
    if (mayBeKilled && random.nextInt(3) == 0) {
      // Spark ends both, one after the other.
      pause();
      first.kill();
      pause();
      second.kill();
      return false;
    }
    return hasArrived(attempt.key(), List.of(first, second), sendsFirst ? second : first);
  }

  private boolean hasArrived(long key, List<End> ends, End receiver) {
    await("the ends of key " + key)
        .atMost(timeout.multipliedBy(2))
        .pollDelay(Duration.ZERO)
        .pollInterval(1, TimeUnit.MILLISECONDS)
        .until(() -> ends.stream().allMatch(End::hasEnded));
    assertThat(faults || ends.stream().allMatch(End::succeeded))
        .as("without a cause: %s", ends)
        .isTrue();
    if (receiver.succeeded()) {
      Content.check(receiver.buffer().buffer(), key);
      return true;
    }
    ends.forEach(End::kill);
    return false;
  }

  private void pause() {
    int choice = random.nextInt(4);
    if (choice > 0) {
      LockSupport.parkNanos(random.nextLong(1, choice * 1_000_000L));
    }
  }

  private End start(Attempt attempt, boolean sends) {
    int here = sends ? attempt.from() : attempt.to();
    DeviceTransfers transfers = executors.get(here).ofAttempt(attempt.attempt());
    long[] keys = {attempt.key()};
    if (sends) {
      SourceBuffer source =
          SourceBuffer.of(device(here), Content.of(attempt.shape(), attempt.key()));
      Event sent = transfers.send(List.of(source), List.of(device(attempt.to())), keys).get(0);
      return new End(transfers, sent, null);
    }
    ReceivedBuffer buffer =
        transfers
            .receive(device(here), List.of(attempt.shape()), List.of(device(attempt.from())), keys)
            .get(0);
    received.add(buffer);
    return new End(transfers, buffer.event(), buffer);
  }
}
