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
  /** Below JUnit's limit for what runs before a class. */
  private static final Duration LIMIT = Duration.ofMinutes(4);

  private ClassArchive() {}

  /**
   * Runs an application in a JVM that archives its classes when it ends. If it does not end in
   * time, the tests run without the archive, more slowly.
   */
  static void write(SparkHome home, Path archive) throws IOException {
    Workspace workspace = new Workspace();
    workspace.open("class-archive");
    boolean done;
    Path unfinished = workspace.folder().resolve("archive.jsa");
    try (ChildProcess process =
        new Submission(workspace, home, ManyClasses.class)
            .master("local[2]")
            .jvmOption("-XX:ArchiveClassesAtExit=" + unfinished)
            .argument(workspace.folder().resolve("tables"))
            .start()) {
      done = isDone(process);
      if (done && Files.exists(unfinished)) {
        Files.move(unfinished, archive, StandardCopyOption.REPLACE_EXISTING);
      } else {
        System.err.println(process.describe("wrote no archive of classes in " + LIMIT));
      }
    }
    if (done) {
      workspace.close();
    } else {
      // A killed application leaves files.
      Folders.delete(workspace.sharedMemory());
      Folders.delete(workspace.folder());
    }
  }

  private static boolean isDone(ChildProcess process) {
    int status;
    try {
      status = process.awaitExit(LIMIT);
    } catch (AssertionError slow) {
      return false;
    }
    if (status != 0) {
      throw new AssertionError(process.describe("ended with status " + status));
    }
    return true;
  }
}
