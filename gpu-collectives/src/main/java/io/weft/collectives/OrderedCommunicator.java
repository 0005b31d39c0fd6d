package io.weft.collectives;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.device.probe.JfrModule;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The part of a communicator that all implementations share: the order of operations, the failure
 * state, and the counters. An implementation runs one operation or group at a time on the caller's
 * thread.
 */
public abstract class OrderedCommunicator implements Communicator {
  private final Bootstrapped self;
  private final CommunicatorOptions options;
  private final CollectiveMetrics metrics = new CollectiveMetrics();
  private final AtomicReference<CollectiveException> failure = new AtomicReference<>();
  private final TicketLock turns;
  private final OperationClock clock;
  private final long timeoutNanos;

  /** The identity of this rank. */
  protected record Bootstrapped(UniqueId id, int rank, int nranks) {
    public static Bootstrapped of(Bootstrap bootstrap) {
      return new Bootstrapped(bootstrap.id(), bootstrap.rank(), bootstrap.nranks());
    }
  }

  protected OrderedCommunicator(Bootstrapped self, CommunicatorOptions options) {
    this.self = self;
    this.options = options;
    this.timeoutNanos = Deadline.after(options.timeout()).length().toNanos();
    this.clock = new OperationClock(metrics, timeoutNanos);
    this.turns = new TicketLock(options.timeout(), () -> failure.get() != null);
  }

  /**
   * Carries out one operation that has passed its checks.
   *
   * @return the algorithm that was used
   */
  protected abstract Algorithm execute(Operation operation, Deadline deadline);

  /** Carries out a group. */
  protected abstract Algorithm executeGroup(List<Operation> operations, Deadline deadline);

  /**
   * Rejects operations that this communicator does not offer. Here: on memory that the host cannot
   * access.
   *
   * @throws CollectiveException of kind INVALID
   */
  protected void checkOffered(Operation operation) {
    operation.requireOnHost();
  }

  /** Nanoseconds that the last execution spent waiting for other ranks. */
  protected abstract long lastWaitNanos();

  /**
   * Tells the other ranks about a failure. It is called once, from any thread, and must not throw.
   */
  protected abstract void announce(CollectiveException cause);

  @Override
  public final int rank() {
    return self.rank();
  }

  @Override
  public final int nranks() {
    return self.nranks();
  }

  @Override
  public final UniqueId id() {
    return self.id();
  }

  @Override
  public final Duration timeout() {
    return options.timeout();
  }

  /** The head of every log line of this communicator. */
  protected final String logPrefix() {
    return options.prefix().of(rank(), nranks(), id());
  }

  @Override
  public final CollectiveMetrics metrics() {
    return metrics;
  }

  @Override
  public final Optional<CollectiveException> failure() {
    return Optional.ofNullable(failure.get());
  }

  /** Private memory; an implementation whose ranks share memory overrides it. */
  @Override
  public SymmetricBuffer symmetric(DataType type, long count) {
    return privateBuffer(type, count, "this communicator has no symmetric memory on the host");
  }

  /** A buffer in private memory, for ranks that cannot share it. Collective. */
  protected final SymmetricBuffer privateBuffer(DataType type, long count, String reason) {
    return PrivateBuffer.allocate(this, type, count, reason);
  }

  /** A recorded operation or group. */
  public interface ReplayStep {
    /** Run together, after {@link #begin}; at least one. */
    List<Operation> operations();

    /** The operations whose buffers a lane keeps. */
    default List<Operation> recorded() {
      return operations();
    }

    default void begin() {}

    default void end() {}
  }

  /**
   * Runs recorded steps in one turn, without the checks of {@link #runGroup}: their buffers were
   * checked when they were recorded, and exist. The timeout applies to each step, also for
   * operations that wait for the end of the replay.
   */
  public final void replay(List<? extends ReplayStep> steps) {
    replay(turns.take(), steps);
  }

  /** As {@link #replay}, on a lane, after the work that is already queued there. */
  public final Event submitReplay(List<? extends ReplayStep> steps, Lane lane) {
    List<Operation> all = steps.stream().flatMap(step -> step.recorded().stream()).toList();
    String what = "a replay of " + steps.size() + " steps";
    HostEvent use = HeldBuffers.hold(rank(), all, what);
    long ticket = turns.take();
    return submit(ticket, what, lane, use, () -> replay(ticket, steps));
  }

  private void replay(long ticket, List<? extends ReplayStep> steps) {
    startTurn(ticket, () -> "a replay of " + steps.size() + " steps");
    List<Operation> running = List.of();
    long start = System.nanoTime();
    try {
      for (ReplayStep step : steps) {
        running = step.operations();
        step.begin();
        start = runStep(running, start);
        step.end();
        turns.progress(start);
      }
    } catch (RuntimeException | Error e) {
      clock.countFailure(running, System.nanoTime() - start, lastWaitNanos());
      List<Operation> failed = running;
      throw broken(e, () -> describe(failed));
    } finally {
      turns.pass();
    }
  }

  /** Returns the time of the step's end, where the next one starts. */
  private long runStep(List<Operation> step, long start) {
    Deadline deadline = Deadline.since(start, timeoutNanos);
    CollectiveEvent traced = startTrace();
    Algorithm algorithm =
        step.size() == 1 ? execute(step.get(0), deadline) : executeGroup(step, deadline);
    long end = System.nanoTime();
    count(traced, step, algorithm, end - start);
    return end;
  }

  @Override
  public final void run(Operation operation) {
    check(operation);
    runInTurn(turns.take(), operation);
  }

  @Override
  public final void runGroup(List<Operation> operations) {
    runGroup(operations, this::executeGroup);
  }

  /** Carries out a group that has passed its checks, as {@link #executeGroup} does. */
  @FunctionalInterface
  protected interface GroupWork {
    Algorithm execute(List<Operation> operations, Deadline deadline);
  }

  /** Runs a group as {@link #runGroup(List)} does, but carries it out with other work. */
  protected final void runGroup(List<Operation> operations, GroupWork work) {
    checkAll(operations);
    if (!operations.isEmpty()) {
      runInTurn(turns.take(), operations, work);
    }
  }

  @Override
  public final Event submit(Operation operation, Lane lane) {
    check(operation);
    String what = operation.signature().toString();
    HostEvent use = HeldBuffers.hold(rank(), List.of(operation), what);
    long ticket = turns.take();
    return submit(ticket, what, lane, use, () -> runInTurn(ticket, operation));
  }

  @Override
  public final Event submitGroup(List<Operation> operations, Lane lane) {
    checkAll(operations);
    List<Operation> group = List.copyOf(operations);
    if (group.isEmpty()) {
      return HostEvent.completed("an empty group");
    }
    String what = "a group of " + group.size();
    HostEvent use = HeldBuffers.hold(rank(), group, what);
    long ticket = turns.take();
    return submit(ticket, what, lane, use, () -> runInTurn(ticket, group, this::executeGroup));
  }

  private void check(Operation operation) {
    operation.check(rank(), nranks());
    checkOffered(operation);
    HeldBuffers.requireHeld(rank(), operation);
  }

  private void checkAll(List<Operation> operations) {
    for (Operation operation : operations) {
      check(operation);
    }
  }

  /**
   * Queues work on a lane. Work that the lane drops would block all later turns, so the
   * communicator is then aborted.
   */
  private Event submit(long ticket, String what, Lane lane, HostEvent use, Runnable work) {
    AtomicBoolean started = new AtomicBoolean();
    Event event;
    try {
      event =
          lane.submit(
              what,
              () -> {
                lane.awaitEnqueued(Deadline.after(options.timeout()));
                started.set(true);
                work.run();
              });
    } catch (RuntimeException e) {
      use.complete();
      if (!turns.giveBack(ticket)) {
        abort(lane + " refused " + what + " while other operations waited for it");
      }
      throw e;
    }
    event.whenDone(
        cause -> {
          use.complete();
          if (!started.get()) {
            abort(lane + " dropped " + what + ": " + cause);
          }
        });
    return event;
  }

  /**
   * Runs work that is not an operation, in its turn on the caller's thread. A failure breaks the
   * communicator.
   */
  protected final void runInTurn(String what, Consumer<Deadline> work) {
    runInTurn(turns.take(), what, work);
  }

  /**
   * Runs work as {@link #runInTurn} does, on a lane, after the work that is already queued there.
   *
   * @param use completed when the work has ended, with or without success
   */
  protected final Event submitInTurn(
      String what, Lane lane, HostEvent use, Consumer<Deadline> work) {
    long ticket = turns.take();
    return submit(ticket, what, lane, use, () -> runInTurn(ticket, what, work));
  }

  private void runInTurn(long ticket, String what, Consumer<Deadline> work) {
    startTurn(ticket, () -> what);
    try {
      work.accept(Deadline.afterNanos(timeoutNanos));
    } catch (RuntimeException | Error e) {
      throw broken(e, () -> what);
    } finally {
      turns.pass();
    }
  }

  private void runInTurn(long ticket, Operation operation) {
    startTurn(ticket, operation::signature);
    CollectiveEvent traced = startTrace();
    Deadline deadline = clock.start(operation);
    try {
      Algorithm algorithm = execute(operation, deadline);
      long waitNanos = lastWaitNanos();
      clock.end(algorithm, waitNanos);
      if (traced != null) {
        traced.finish(this, List.of(operation), algorithm, waitNanos);
      }
    } catch (RuntimeException | Error e) {
      clock.fail(lastWaitNanos());
      throw broken(e, operation::signature);
    } finally {
      turns.pass();
    }
  }

  private void runInTurn(long ticket, List<Operation> group, GroupWork work) {
    startTurn(ticket, () -> describe(group));
    CollectiveEvent traced = startTrace();
    long start = System.nanoTime();
    try {
      Algorithm algorithm = work.execute(group, Deadline.since(start, timeoutNanos));
      count(traced, group, algorithm, System.nanoTime() - start);
    } catch (RuntimeException | Error e) {
      clock.countFailure(group, System.nanoTime() - start, lastWaitNanos());
      throw broken(e, () -> describe(group));
    } finally {
      turns.pass();
    }
  }

  /** Returns null while no recording wants the event. */
  private static CollectiveEvent startTrace() {
    return JfrModule.PRESENT ? CollectiveEvent.start() : null;
  }

  private void count(
      CollectiveEvent traced, List<Operation> done, Algorithm algorithm, long nanos) {
    long waitNanos = lastWaitNanos();
    clock.count(done, algorithm, nanos, waitNanos);
    if (traced != null) {
      traced.finish(this, done, algorithm, waitNanos);
    }
  }

  private static String describe(List<Operation> group) {
    return "a group of " + group.size() + " from " + group.get(0).signature() + " on";
  }

  private void startTurn(long ticket, Supplier<?> what) {
    boolean mine = turns.await(ticket);
    CollectiveException before = failure.get();
    if (before != null) {
      if (mine) {
        turns.pass();
      }
      throw before.forOperation(what.get().toString());
    }
    if (!mine) {
      throw broken(
          new CollectiveException(
              Thread.currentThread().isInterrupted()
                  ? CollectiveException.Kind.ABORTED
                  : CollectiveException.Kind.TIMEOUT,
              List.of(rank()),
              what.get()
                  + " on rank "
                  + rank()
                  + " did not get its turn: "
                  + (Thread.currentThread().isInterrupted()
                      ? "the thread was interrupted"
                      : "the operation before it ran longer than " + options.timeout())),
          what);
    }
  }

  /** Breaks the communicator and returns the exception for the caller to throw. */
  private CollectiveException broken(Throwable cause, Supplier<?> what) {
    CollectiveException failed =
        cause instanceof CollectiveException collective
            ? collective
            : new CollectiveException(
                CollectiveException.Kind.ABORTED,
                List.of(rank()),
                what.get() + " failed on rank " + rank() + ": " + cause,
                cause);
    CollectiveException explained = options.names().explain(failed);
    fail(explained);
    return explained;
  }

  /** Breaks the communicator here and, the first time, tells the other ranks. */
  protected final void fail(CollectiveException cause) {
    if (failure.compareAndSet(null, cause)) {
      turns.wakeAll();
      announce(cause);
    }
  }

  /** Breaks the communicator here because another rank reported a failure; tells no other rank. */
  protected final boolean adopt(CollectiveException cause) {
    boolean first = failure.compareAndSet(null, cause);
    turns.wakeAll();
    return first;
  }

  /**
   * Waits until no operation runs any more. The communicator has to be broken already.
   *
   * @return false when an operation still ran at the deadline
   */
  protected final boolean awaitIdle(Deadline deadline) {
    return turns.awaitIdle(deadline);
  }

  /**
   * Runs an action as soon as no operation runs any more, after {@link #awaitIdle} has given up.
   */
  protected final void whenIdle(Runnable action) {
    turns.whenIdle(action);
  }

  @Override
  public final void abort(String reason) {
    fail(
        options
            .names()
            .explain(
                new CollectiveException(
                    CollectiveException.Kind.ABORTED,
                    List.of(rank()),
                    logPrefix()
                        + "rank "
                        + rank()
                        + " aborted communicator "
                        + id()
                        + ": "
                        + reason)));
  }

  /**
   * Breaks the communicator on all ranks with a failure that was found outside it, for example by
   * another communicator of the same ranks.
   */
  public final void abort(CollectiveException cause) {
    fail(options.names().explain(cause));
  }

  @Override
  public String toString() {
    return options.prefix().ofLane()
        + "rank "
        + rank()
        + "/"
        + nranks()
        + " of communicator "
        + id();
  }
}
