package io.weft.spark.compat;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import org.apache.spark.ShuffleDependency;

/**
 * The order-independent row checksums of Spark 4.1 and later. The driver compares them to detect a
 * repeated map task that produced other rows. Spark 4.0 has no such classes.
 *
 * <p>Not thread-safe: one task thread uses an instance.
 */
public final class RowChecksums {
  private static final MethodHandle OF_DEPENDENCY;
  private static final MethodHandle UPDATE;
  private static final MethodHandle AGGREGATE;

  static {
    try {
      Class<?> checksum = checksumClass();
      OF_DEPENDENCY = checksum == null ? null : ofDependency(checksum);
      UPDATE = checksum == null ? null : update(checksum);
      AGGREGATE = checksum == null ? null : aggregate(checksum);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final Object[] byPartition;

  private RowChecksums(Object[] byPartition) {
    this.byPartition = byPartition;
  }

  /** Returns the checksums that a writer of this shuffle updates, or null if there are none. */
  public static RowChecksums of(ShuffleDependency<?, ?, ?> dependency) {
    if (OF_DEPENDENCY == null) {
      return null;
    }
    try {
      Object[] checksums = (Object[]) OF_DEPENDENCY.invokeExact((Object) dependency);
      return checksums == null || checksums.length == 0 ? null : new RowChecksums(checksums);
    } catch (Throwable e) {
      throw Reflection.rethrow(e);
    }
  }

  /** Adds one row to its partition's checksum. */
  public void update(int partition, Object key, Object row) {
    try {
      UPDATE.invokeExact(byPartition[partition], key, row);
    } catch (Throwable e) {
      throw Reflection.rethrow(e);
    }
  }

  /** Returns the checksum of the whole map output. */
  public long aggregate() {
    try {
      return (long) AGGREGATE.invokeExact((Object) byPartition);
    } catch (Throwable e) {
      throw Reflection.rethrow(e);
    }
  }

  private static Class<?> checksumClass() {
    try {
      return Class.forName("org.apache.spark.shuffle.checksum.RowBasedChecksum");
    } catch (ClassNotFoundException e) {
      return null;
    }
  }

  private static MethodHandle ofDependency(Class<?> checksum) throws ReflectiveOperationException {
    return MethodHandles.publicLookup()
        .findVirtual(
            ShuffleDependency.class, "rowBasedChecksums", MethodType.methodType(arrayOf(checksum)))
        .asType(MethodType.methodType(Object[].class, Object.class));
  }

  private static MethodHandle update(Class<?> checksum) throws ReflectiveOperationException {
    MethodType type = MethodType.methodType(void.class, Object.class, Object.class);
    return MethodHandles.publicLookup()
        .findVirtual(checksum, "update", type)
        .asType(type.insertParameterTypes(0, Object.class));
  }

  private static MethodHandle aggregate(Class<?> checksum) throws ReflectiveOperationException {
    MethodType type = MethodType.methodType(long.class, arrayOf(checksum));
    return MethodHandles.publicLookup()
        .findStatic(checksum, "getAggregatedChecksumValue", type)
        .asType(MethodType.methodType(long.class, Object.class));
  }

  private static Class<?> arrayOf(Class<?> element) {
    return Array.newInstance(element, 0).getClass();
  }
}
