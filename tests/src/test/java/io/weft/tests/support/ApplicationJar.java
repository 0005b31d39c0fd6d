package io.weft.tests.support;

import io.weft.tests.application.Stage;
import io.weft.tests.workload.Queries;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;

/**
 * The jar with the packages {@code application} and {@code workload}, which tests submit to Spark
 * as a user's program.
 */
public final class ApplicationJar {
  private static Path jar;

  private ApplicationJar() {}

  /** The jar, packed at the first call. */
  public static synchronized Path get() {
    if (jar == null) {
      Path file = BuildTree.newFolder("application").resolve("weft-tests-application.jar");
      try {
        pack(file);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      jar = file;
    }
    return jar;
  }

  private static void pack(Path file) throws IOException {
    try (OutputStream bytes = Files.newOutputStream(file);
        JarOutputStream out = new JarOutputStream(bytes)) {
      for (Class<?> inPackage : List.of(Stage.class, Queries.class)) {
        addPackage(out, inPackage);
      }
    }
  }

  private static void addPackage(JarOutputStream out, Class<?> inPackage) throws IOException {
    Path classes = BuildTree.target().resolve("test-classes");
    Path folder = classes.resolve(inPackage.getPackageName().replace('.', '/'));
    for (Path file : Folders.tree(folder)) {
      out.putNextEntry(new JarEntry(classes.relativize(file).toString()));
      Files.copy(file, out);
      out.closeEntry();
    }
  }
}
