package io.weft.spark.compat;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Optional;
import java.util.concurrent.locks.Lock;
import org.apache.spark.ShuffleStatus;

/**
 * The lock of the map statuses of a shuffle on the driver, which Spark does not show. With it, a
 * status is checked and changed before Spark changes it. Stateless.
 */
public final class StatusLock {
  private static final Field WRITE_LOCK = field();
  private static final Method MISMATCHES = mismatches();

  private StatusLock() {}

  /** Why this Spark's statuses cannot be locked; empty if they can. */
  public static Optional<String> objection() {
    return WRITE_LOCK == null
        ? Optional.of("this Spark's ShuffleStatus has no field writeLock")
        : Optional.empty();
  }

  /** Runs an action while no other thread reads or changes the statuses of a shuffle. */
  public static void locked(ShuffleStatus statuses, Runnable action) {
    Lock lock;
    try {
      lock = (Lock) WRITE_LOCK.get(statuses);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException("the lock of a ShuffleStatus cannot be read", e);
    }
    lock.lock();
    try {
      action.run();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Whether a repeated map task of a shuffle made other rows than before, as far as Spark knows.
   * Spark 4.0 does not check it.
   */
  public static boolean madeOtherRows(ShuffleStatus statuses) {
    if (MISMATCHES == null) {
      return false;
    }
    try {
      return ((scala.collection.Set<?>) MISMATCHES.invoke(statuses)).nonEmpty();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("the mismatches of a ShuffleStatus cannot be read", e);
    }
  }

  private static Field field() {
    try {
      Field field = ShuffleStatus.class.getDeclaredField("writeLock");
      field.setAccessible(true);
      return Lock.class.isAssignableFrom(field.getType()) ? field : null;
    } catch (ReflectiveOperationException | RuntimeException e) {
      return null;
    }
  }

  private static Method mismatches() {
    try {
      return ShuffleStatus.class.getMethod("checksumMismatchIndices");
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }
}
