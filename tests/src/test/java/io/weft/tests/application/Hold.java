package io.weft.tests.application;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF1;

/**
 * A function that returns its argument, but at one value obeys files in a folder. {@code fail}
 * makes the task fail. {@code hold} makes it write its attempt to {@code held} and wait until
 * {@code hold} is deleted or the task is killed.
 */
public final class Hold implements UDF1<Long, Long> {
  private static final long serialVersionUID = 1L;
  private static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(3);

  private final String folder;
  private final long value;

  /** A function for tasks on this host. */
  public Hold(Path folder, long value) {
    this.folder = folder.toString();
    this.value = value;
  }

  @Override
  public Long call(Long argument) throws IOException {
    if (argument == value) {
      if (Files.exists(file("fail"))) {
        throw new IllegalStateException("failed, as the test asked");
      }
      waitWhileHeld();
    }
    return argument;
  }

  private void waitWhileHeld() throws IOException {
    // Only one attempt is held; another attempt of the same task continues.
    if (!Files.exists(file("hold")) || Files.exists(file("held"))) {
      return;
    }
    Path draft = file("held." + TaskContext.get().taskAttemptId());
    Files.writeString(draft, Long.toString(TaskContext.get().taskAttemptId()));
    try {
      // Written atomically and only once: several tasks may arrive at the same time.
      Files.createLink(file("held"), draft);
    } catch (FileAlreadyExistsException e) {
      return;
    }
    long deadline = System.nanoTime() + LIMIT_NANOS;
    while (Files.exists(file("hold"))) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
      if (Thread.interrupted() || System.nanoTime() > deadline) {
        throw new IllegalStateException("no longer held: interrupted, or timed out");
      }
    }
  }

  private Path file(String name) {
    return Path.of(folder, name);
  }
}
