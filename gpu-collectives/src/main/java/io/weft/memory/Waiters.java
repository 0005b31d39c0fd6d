package io.weft.memory;

import static java.lang.Thread.currentThread;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;

/**
 * Actions that run before and while a thread waits for memory that other threads free. They run on
 * the waiting thread, outside all locks. Thread-safe.
 */
public final class Waiters {
  private final List<Runnable> checks = new CopyOnWriteArrayList<>();

  /** The lists are immutable; they are replaced. */
  private final Map<Thread, List<Runnable>> holders = new ConcurrentHashMap<>();

  Waiters() {}

  /** Removes an action. Can be closed again, and on any thread. */
  @FunctionalInterface
  public interface Registration extends AutoCloseable {
    @Override
    void close();
  }

  /**
   * Adds a check that runs before a thread waits, and once a second while it waits.
   *
   * @param check throws to end the wait, such as when the task was killed
   */
  public void check(Runnable check) {
    checks.add(check);
  }

  /**
   * Adds an action of the calling thread, which runs before this thread waits. A thread that holds
   * transient memory while it calls code that allocates some returns it here. Otherwise two such
   * threads could wait for each other.
   *
   * @param giveBack must not allocate memory for which it may wait
   */
  public Registration beforeThisThreadWaits(Runnable giveBack) {
    Thread holder = currentThread();
    holders.merge(
        holder, List.of(giveBack), (a, b) -> Stream.concat(a.stream(), b.stream()).toList());
    return () -> holders.computeIfPresent(holder, (thread, all) -> without(giveBack, all));
  }

  private static List<Runnable> without(Runnable giveBack, List<Runnable> all) {
    List<Runnable> rest = all.stream().filter(other -> other != giveBack).toList();
    return rest.isEmpty() ? null : rest;
  }

  /** Runs the actions of the calling thread. */
  void returnMemory() {
    holders.getOrDefault(currentThread(), List.of()).forEach(Runnable::run);
  }

  /** Throws when the calling thread must stop waiting. */
  void check() {
    checks.forEach(Runnable::run);
  }
}
