package io.weft.spark.gpu.jcuda;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import jcuda.JCudaVersion;
import jcuda.LibUtils;

/** JCuda in this process: whether its classes and its native code can be used. Thread-safe. */
final class JcudaLibrary {
  private static final String CLASSES = "org.jcuda:jcuda:12.6.0";
  private static final String NATIVES = "org.jcuda:jcuda-natives:12.6.0";

  private JcudaLibrary() {}

  /**
   * Verifies that JCuda's classes are there; loads none of its native code.
   *
   * @param where the process, for the message
   * @throws IllegalStateException if they are not
   */
  static void requireClasses(String where) {
    try {
      Class<?> unused =
          Class.forName("jcuda.driver.JCudaDriver", false, JcudaLibrary.class.getClassLoader());
    } catch (ClassNotFoundException | NoClassDefFoundError e) {
      throw new IllegalStateException(
          ("JCuda is not on the class path of %s, beside Weft's jar, and a function on batches"
                  + " needs it: add %s and %s")
              .formatted(where, CLASSES, NATIVES),
          e);
    }
  }

  /**
   * Loads JCuda's native code for the driver API, once. The driver must be loaded before: JCuda
   * then uses the same one.
   *
   * @throws IllegalStateException if it cannot be loaded, with the reason
   */
  static void load() {
    if (Loaded.FAILURE.isPresent()) {
      throw new IllegalStateException(
          ("JCuda's native code cannot be loaded in this executor: add %s with the classifier of"
                  + " this machine, such as linux-x86_64, to the class path")
              .formatted(NATIVES),
          Loaded.FAILURE.get());
    }
  }

  private static final class Loaded {
    /** Its stack trace says once what JCuda has tried. */
    static final Optional<Throwable> FAILURE = tryLoad();

    private static Optional<Throwable> tryLoad() {
      IOException notUnpacked = null;
      try {
        unpack();
      } catch (IOException e) {
        notUnpacked = e; // It may be on the library path.
      }
      try {
        Class<?> unused =
            Class.forName("jcuda.driver.JCudaDriver", true, JcudaLibrary.class.getClassLoader());
        return Optional.empty();
      } catch (ClassNotFoundException | LinkageError e) {
        if (notUnpacked != null) {
          e.addSuppressed(notUnpacked);
        }
        return Optional.of(e);
      }
    }

    /**
     * Puts the library where JCuda would write it. JCuda writes it in place, and does so only if
     * there is none. So executors of one host that start together would load an incomplete file.
     */
    private static void unpack() throws IOException {
      String name =
          LibUtils.createLibraryFileName(
              LibUtils.createPlatformLibraryName("JCudaDriver-" + JCudaVersion.get()));
      try (InputStream library = LibUtils.class.getResourceAsStream("/lib/" + name)) {
        if (library == null) {
          return; // It may be on the library path; else JCuda reports what it has tried.
        }
        byte[] bytes = library.readAllBytes();
        Path folder = Path.of(System.getProperty("java.io.tmpdir"));
        Path place = folder.resolve(name);
        if (Files.exists(place) && Files.size(place) == bytes.length) {
          return;
        }
        Path draft = Files.createTempFile(folder, name, ".draft");
        try {
          Files.write(draft, bytes);
          Files.move(draft, place, StandardCopyOption.ATOMIC_MOVE);
        } finally {
          Files.deleteIfExists(draft);
        }
      }
    }
  }
}
