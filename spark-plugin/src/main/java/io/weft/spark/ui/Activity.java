package io.weft.spark.ui;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.runtime.WeftMetrics;
import io.weft.spark.ui.TimeLine.Kind;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;

/**
 * What Weft did in an application: the contents of its tab. On the driver it grows by reports and
 * events, in the history server by the events in the log. Its size is bounded. Thread-safe.
 */
public final class Activity {
  private static final String MIGRATED = WeftMetrics.name(ExchangeCounter.OUTPUTS_MIGRATED);

  private final ShuffleTable shuffles = new ShuffleTable();
  private final ExecutorTable executors = new ExecutorTable();
  private final TimeLine timeLine = new TimeLine();
  private final TrafficMatrix traffic;
  private final LongSupplier clock;

  /**
   * Starts empty.
   *
   * @param hosts returns the host of an executor
   * @param clock milliseconds since 1970
   */
  public Activity(UnaryOperator<String> hosts, LongSupplier clock) {
    this.traffic = new TrafficMatrix(hosts);
    this.clock = clock;
  }

  /** Starts empty, to be filled from a log. */
  Activity() {
    this(executor -> executor, () -> 0);
  }

  /** The shuffles. */
  public ShuffleTable shuffles() {
    return shuffles;
  }

  /** The executors. */
  public ExecutorTable executors() {
    return executors;
  }

  TrafficMatrix traffic() {
    return traffic;
  }

  TimeLine timeLine() {
    return timeLine;
  }

  /**
   * Adds a report of an executor.
   *
   * @param ended whether it has ended, so that the report is late
   */
  public void reported(Report message, boolean ended) {
    String id = message.report().executorId();
    String host = message.report().host();
    long migrated = executors.reported(message, ended, MIGRATED, clock.getAsLong());
    if (migrated > 0) {
      add(
          Kind.MIGRATION,
          "executor %s received %d map outputs of decommissioned executors"
              .formatted(id, migrated));
    }
    message.traffic().shuffles().forEach(shuffles::add);
    traffic.add(id, host, message.traffic().byHost(), message.traffic().sources());
  }

  /** Records that a shuffle goes another way than through Weft. */
  public void fellBack(String reason) {
    add(Kind.FALLBACK, "Spark's sort shuffle carries a shuffle: " + reason);
  }

  /** Records a failed write or fetch. */
  public void failed(String what) {
    add(Kind.FAILURE, what);
  }

  /** Records that Weft takes no new shuffles. */
  public void switchedOff(String reason) {
    add(Kind.SWITCHED_OFF, "new shuffles go through Spark's sort shuffle: " + reason);
  }

  /** Records that an executor adopted map outputs of one that died on its host. */
  public void adopted(String adopter, String dead, long outputs) {
    add(
        Kind.ADOPTION,
        "executor %s adopted %d map outputs of executor %s, which died"
            .formatted(adopter, outputs, dead));
  }

  /** Records that the memory of an executor is full. */
  public void pressed(String executorId) {
    add(Kind.PRESSURE, "executor " + executorId + ": shared memory is full, or idle and in use");
  }

  /** Records a warning about an executor. */
  public void warned(String executorId, String host, String warning) {
    executors.warned(executorId, host, warning);
    add(Kind.WARNING, "executor " + executorId + " on " + host + ": " + warning);
  }

  /** Records that an executor ended. */
  public void ended(String executorId, String reason) {
    executors
        .ended(executorId)
        .ifPresent(
            host ->
                add(Kind.EXECUTOR_ENDED, "executor " + executorId + " on " + host + ": " + reason));
  }

  private void add(Kind kind, String text) {
    timeLine.add(clock.getAsLong(), kind, text);
  }

  /**
   * Returns what has changed since the last call, for the event log.
   *
   * @param withExecutors whether executors are included
   */
  ActivityEvent takeChanges(Overview overview, boolean withExecutors) {
    return new ActivityEvent(
        overview,
        shuffles.takeChanged(),
        withExecutors ? executors.takeChanged() : List.of(),
        traffic.takeChanged() ? traffic.snapshot() : null,
        timeLine.takeChanged());
  }

  /** Applies an event of a log. */
  void apply(ActivityEvent event) {
    event.shuffles().forEach(shuffles::set);
    event.executors().forEach(executors::set);
    event.events().forEach(timeLine::set);
    if (event.traffic() != null) {
      traffic.set(event.traffic());
    }
  }

  /** Returns all contents as one event, for the history server's store. */
  ActivityEvent all(Overview overview) {
    return new ActivityEvent(
        overview, shuffles.rows(), executors.rows(), traffic.snapshot(), timeLine.events());
  }
}
