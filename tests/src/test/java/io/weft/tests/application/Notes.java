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
 * Files by which tasks, and the test that runs them, tell each other how far they are.
 *
 * @param folder that all of them see
 */
public record Notes(String folder) implements Serializable {
  static final Duration PATIENCE = Duration.ofMinutes(3);

  /** What a note says, as soon as somebody has left it. */
  String await(String name) {
    Path file = Path.of(folder, name);
    Deadline deadline = Deadline.after(PATIENCE);
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

  /** Whether somebody has left a note. */
  boolean isThere(String name) {
    return Files.exists(Path.of(folder, name));
  }

  /** Leaves a note, a whole file at once for whoever waits for it. */
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
