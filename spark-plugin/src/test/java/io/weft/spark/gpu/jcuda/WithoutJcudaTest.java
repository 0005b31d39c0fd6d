package io.weft.spark.gpu.jcuda;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.gpu.jcuda.JcudaCall.JcudaDeviceFunction;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import jcuda.driver.JCudaDriver;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A driver or executor whose class path lacks JCuda or its native code. */
class WithoutJcudaTest {
  private static final StructType SCHEMA = new StructType().add("n", DataTypes.LongType);

  @TempDir Path folder;

  /** Loads this package again, and JCuda either again or not at all; never its native code. */
  private static final class Lacking extends URLClassLoader {
    private final boolean hasClasses;

    Lacking(boolean hasClasses) {
      super(
          new URL[] {
            of(JcudaDeviceFunction.class), of(WithoutJcudaTest.class), of(JCudaDriver.class)
          },
          JcudaDeviceFunction.class.getClassLoader());
      this.hasClasses = hasClasses;
    }

    private static URL of(Class<?> type) {
      return type.getProtectionDomain().getCodeSource().getLocation();
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      boolean ofJcuda = name.startsWith("jcuda.");
      if (ofJcuda && !hasClasses) {
        throw new ClassNotFoundException(name);
      }
      if (!ofJcuda && !name.startsWith(JcudaDeviceFunction.class.getPackageName() + ".")) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        Class<?> loaded = findLoadedClass(name);
        return loaded == null ? findClass(name) : loaded;
      }
    }

    @Override
    public URL getResource(String name) {
      return name.startsWith("lib/") ? null : super.getResource(name);
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
  void aReceivedFunctionReportsTheMissingClasses() throws Exception {
    byte[] sent = sent(JcudaBatches.function(SCHEMA, (batch, work) -> batch));
    try (Lacking loader = new Lacking(false)) {
      assertThatThrownBy(() -> received(sent, loader))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("JCuda is not on the class path of this executor")
          .hasMessageContaining("add org.jcuda:jcuda:12.6.0 and org.jcuda:jcuda-natives:12.6.0");
    }
  }

  /** Calls a static method without parameters in the package as the loader has it. */
  private static void call(ClassLoader loader, Class<?> type, String name) throws Throwable {
    Method method = Class.forName(type.getName(), true, loader).getDeclaredMethod(name);
    method.setAccessible(true);
    try {
      method.invoke(null);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** Before there is a query. */
  static void makeFunction() {
    var unused = JcudaBatches.function(SCHEMA, (batch, work) -> batch);
  }

  @Test
  void theDriverReportsTheMissingClasses() throws Exception {
    try (Lacking loader = new Lacking(false)) {
      assertThatThrownBy(() -> call(loader, WithoutJcudaTest.class, "makeFunction"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("JCuda is not on the class path of the driver");
    }
  }

  @Test
  void anExecutorReportsTheMissingNativeCode() throws Exception {
    String temporary = System.getProperty("java.io.tmpdir");
    System.setProperty("java.io.tmpdir", folder.toString()); // JCuda uses what it finds there.
    try (Lacking loader = new Lacking(true)) {
      for (int i = 0; i < 2; i++) {
        assertThatThrownBy(() -> call(loader, JcudaLibrary.class, "load"))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("add org.jcuda:jcuda-natives:12.6.0 with the classifier")
            .hasStackTraceContaining("libJCudaDriver-12.6.0");
      }
    } finally {
      System.setProperty("java.io.tmpdir", temporary);
    }
  }
}
