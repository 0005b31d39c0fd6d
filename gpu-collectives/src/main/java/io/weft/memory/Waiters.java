package io.weft.memory;

import static java.lang.Thread.currentThread;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;

/**
 * What threads do before and while they wait for memory that others give back. It is run on the
 * thread that waits, outside all locks. Thread-safe.
 */
public final class Waiters {
  private final List<Runnable> checks = new CopyOnWriteArrayList<>();

  /** The lists are never changed, only replaced. */
  private final Map<Thread, List<Runnable>> holders = new ConcurrentHashMap<>();

  Waiters() {}

  /** Ends what it was returned for. Can be repeated, on any thread. */
  @FunctionalInterface
  public interface Registration extends AutoCloseable {
    @Override
    void close();
  }

  /**
   * Adds what is run before a thread waits and once a second while it does.
   *
   * @param check throws what the wait shall end with, such as that the task was killed
   */
  public void check(Runnable check) {
    checks.add(check);
  }

  /**
   * Adds what the calling thread does before it waits: whoever holds memory for moments while it
   * asks somebody else who needs some gives it back here, so that threads that do both do not wait
   * for each other.
   *
   * @param giveBack must not ask for memory that is waited for
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

  /** Gives back what the calling thread holds. */
  void giveWay() {
    holders.getOrDefault(currentThread(), List.of()).forEach(Runnable::run);
  }

  /** Throws where the calling thread is not to wait any longer. */
  void check() {
    checks.forEach(Runnable::run);
  }
}
