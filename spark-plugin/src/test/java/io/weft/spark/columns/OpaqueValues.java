package io.weft.spark.columns;

import java.lang.reflect.Method;
import org.apache.spark.sql.types.DataType;

/** Creates values of types that not every Spark version has. */
final class OpaqueValues {
  private OpaqueValues() {}

  static Object of(DataType type, byte[] bytes) {
    String name = type.getClass().getSimpleName().startsWith("Geom") ? "Geometry" : "Geography";
    for (String candidate : new String[] {"BinaryView", name + "Val"}) {
      try {
        Method make =
            Class.forName("org.apache.spark.unsafe.types." + candidate)
                .getMethod("fromBytes", byte[].class);
        return make.invoke(null, (Object) bytes);
      } catch (ClassNotFoundException e) {
        continue;
      } catch (ReflectiveOperationException e) {
        throw new AssertionError(e);
      }
    }
    throw new AssertionError("This Spark has no values of " + type.sql());
  }
}
