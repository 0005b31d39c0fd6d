package io.weft.spark.gpu.cudf;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.gpu.cudf.CudfCall.CudfDeviceFunction;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.net.URL;
import java.net.URLClassLoader;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** An executor whose class path lacks cudf. */
class WithoutCudfTest {
  /** Loads this package again, and no class of cudf. */
  private static final class Lacking extends URLClassLoader {
    Lacking() {
      super(
          new URL[] {of(CudfDeviceFunction.class), of(WithoutCudfTest.class)},
          CudfDeviceFunction.class.getClassLoader());
    }

    private static URL of(Class<?> type) {
      return type.getProtectionDomain().getCodeSource().getLocation();
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (name.startsWith("ai.rapids.cudf.")) {
        throw new ClassNotFoundException(name);
      }
      if (!name.startsWith(CudfDeviceFunction.class.getPackageName() + ".")) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        Class<?> loaded = findLoadedClass(name);
        return loaded == null ? findClass(name) : loaded;
      }
    }
  }

  private static byte[] sent(Object function) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(function);
    }
    return bytes.toByteArray();
  }

  private static Object received(byte[] sent, ClassLoader loader) throws Exception {
    try (ObjectInputStream in =
        new ObjectInputStream(new ByteArrayInputStream(sent)) {
          @Override
          protected Class<?> resolveClass(ObjectStreamClass type) throws ClassNotFoundException {
            return Class.forName(type.getName(), false, loader);
          }
        }) {
      return in.readObject();
    }
  }

  @Test
  void aReceivedFunctionReportsTheMissingLibrary() throws Exception {
    StructType schema = new StructType().add("n", DataTypes.LongType);
    byte[] sent = sent(CudfBatches.function(schema, batch -> batch));
    try (Lacking loader = new Lacking()) {
      assertThatThrownBy(() -> received(sent, loader))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("cudf is not on the class path of this executor")
          .hasMessageContaining("add ai.rapids:cudf");
    }
  }
}
