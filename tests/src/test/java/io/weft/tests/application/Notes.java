package io.weft.tests.application;

import io.weft.device.Deadline;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.TaskContext;

/**
 * Files by which tasks, and the test that runs them, report their progress to each other.
 *
 * @param folder that all of them see
 */
public record Notes(String folder) implements Serializable {
  static final Duration TIMEOUT = Duration.ofMinutes(3);

  /** Waits for a note and returns its text. */
  String await(String name) {
    Path file = Path.of(folder, name);
    Deadline deadline = Deadline.after(TIMEOUT);
    while (!Files.exists(file)) {
      if (deadline.expired() || TaskContext.get().isInterrupted()) {
        throw new IllegalStateException("there is no note " + name + " after " + deadline);
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(10));
    }
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Returns whether a note exists. */
  boolean isThere(String name) {
    return Files.exists(Path.of(folder, name));
  }

  /** Writes a note atomically. */
  void leave(String name, String text) {
    try {
      Path draft = Files.createTempFile(Path.of(folder), "draft-", ".txt");
      Files.writeString(draft, text);
      Files.move(draft, Path.of(folder, name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
