package io.weft.spark.compat;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.storage.BlockManagerId;

/**
 * Creates Spark's map statuses on every supported version. Before Spark 4.1 they carry no row
 * checksum.
 *
 * <p>Thread-safety: stateless.
 */
public final class MapStatuses {
  private static final MethodHandle APPLY = find();

  private MapStatuses() {}

  /**
   * Creates the status a map task returns.
   *
   * @param location where readers find the output: {@code blockManager.blockManagerId()}
   * @param sizes bytes by partition; must not be 0 where the partition has data, or Spark never
   *     reads it
   * @param mapId the key's map id
   * @param checksum order-independent checksum over all rows, or 0
   */
  public static MapStatus create(BlockManagerId location, long[] sizes, long mapId, long checksum) {
    try {
      return (MapStatus) APPLY.invokeExact(location, sizes, mapId, checksum);
    } catch (Throwable e) {
      throw Reflection.rethrow(e);
    }
  }

  private static MethodHandle find() {
    try {
      Class<?> companion = Class.forName("org.apache.spark.scheduler.MapStatus$");
      Object module = companion.getField("MODULE$").get(null);
      MethodHandle withChecksum = lookup(companion, long.class);
      return withChecksum == null
          ? MethodHandles.dropArguments(lookup(companion).bindTo(module), 3, long.class)
          : withChecksum.bindTo(module);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** Finds the factory with further parameters, or null if this Spark has none. */
  private static MethodHandle lookup(Class<?> companion, Class<?>... further)
      throws IllegalAccessException {
    MethodType type =
        MethodType.methodType(MapStatus.class, BlockManagerId.class, long[].class, long.class)
            .appendParameterTypes(further);
    try {
      return MethodHandles.publicLookup().findVirtual(companion, "apply", type);
    } catch (NoSuchMethodException e) {
      return null;
    }
  }
}
