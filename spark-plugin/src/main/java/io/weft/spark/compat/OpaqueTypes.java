package io.weft.spark.compat;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.types.PhysicalDataType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * Types whose values are bytes that only Spark interprets: geometry and geography. Not every
 * supported Spark has them, so they are found by name: absent in 4.0, classes of their own in 4.1,
 * views of bytes from 4.2 on.
 */
public final class OpaqueTypes {
  private static final Set<String> OPAQUE =
      Set.of("PhysicalGeometryType", "PhysicalGeographyType", "PhysicalBinaryViewType");
  private static final String VALUES = "org.apache.spark.unsafe.types.";

  private OpaqueTypes() {}

  /** Whether values of this physical type are bytes with an accessor of their own. */
  public static boolean isOpaque(PhysicalDataType physical) {
    return OPAQUE.contains(name(physical.getClass()))
        || OPAQUE.contains(name(physical.getClass().getSuperclass()));
  }

  private static String name(Class<?> type) {
    String name = type.getSimpleName();
    return name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
  }

  /** Reads the bytes of a type's values. Not thread-safe. */
  public static final class Reader {
    private final MethodHandle fromRow;
    private final MethodHandle fromVector;

    /** Finds the accessors of this Spark for an opaque type. */
    public Reader(DataType type) {
      fromRow = accessor(SpecializedGetters.class, type);
      fromVector = accessor(ColumnVector.class, type);
    }

    /** Returns the bytes of a value that is not null. */
    public byte[] bytes(SpecializedGetters row, int ordinal) {
      try {
        return (byte[]) fromRow.invokeExact(row, ordinal);
      } catch (Throwable e) {
        throw Reflection.rethrow(e);
      }
    }

    /** Returns the bytes of a value that is not null. */
    public byte[] bytes(ColumnVector vector, int row) {
      try {
        return (byte[]) fromVector.invokeExact(vector, row);
      } catch (Throwable e) {
        throw Reflection.rethrow(e);
      }
    }

    private static MethodHandle accessor(Class<?> holder, DataType type) {
      MethodHandle handle = find(holder, "getBinaryView", "BinaryView");
      if (handle == null) {
        boolean geometry = type.getClass().getSimpleName().startsWith("Geometry");
        handle =
            geometry
                ? find(holder, "getGeometry", "GeometryVal")
                : find(holder, "getGeography", "GeographyVal");
      }
      if (handle == null) {
        throw new IllegalStateException(
            "This Spark has the type " + type.sql() + " but no known accessor for its bytes");
      }
      return handle.asType(MethodType.methodType(byte[].class, holder, int.class));
    }

    private static MethodHandle find(Class<?> holder, String getter, String valueClass) {
      try {
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        Class<?> value = Class.forName(VALUES + valueClass, false, holder.getClassLoader());
        MethodHandle get =
            lookup.findVirtual(holder, getter, MethodType.methodType(value, int.class));
        MethodHandle bytes =
            lookup.findVirtual(value, "getBytes", MethodType.methodType(byte[].class));
        return MethodHandles.filterReturnValue(get, bytes);
      } catch (ReflectiveOperationException e) {
        return null;
      }
    }
  }
}
