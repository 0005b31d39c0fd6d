package io.weft.tests.support;

import io.weft.tests.application.ManyClasses;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;

/**
 * Writes an archive of Spark's classes, which the JVM calls application class data sharing. The
 * system tests start hundreds of JVMs, and each would load and verify ten thousand classes.
 */
final class ClassArchive {
  private static final Duration LIMIT = Duration.ofMinutes(3);

  private ClassArchive() {}

  /**
   * Runs an application in a JVM that archives its classes when it ends. Without a result the tests
   * still work, more slowly.
   */
  static void write(SparkHome home, Path archive) throws IOException {
    Workspace workspace = new Workspace();
    workspace.open("class-archive");
    Path unfinished = workspace.folder().resolve("archive.jsa");
    try (ChildProcess process =
        new Submission(workspace, home, ManyClasses.class)
            .master("local[2]")
            .jvmOption("-XX:ArchiveClassesAtExit=" + unfinished)
            .argument(workspace.folder().resolve("tables"))
            .start()) {
      process.awaitSuccess(LIMIT);
      if (Files.exists(unfinished)) {
        Files.move(unfinished, archive, StandardCopyOption.REPLACE_EXISTING);
      } else {
        System.err.println(process.describe("wrote no archive of classes"));
      }
    }
    workspace.close();
  }
}
