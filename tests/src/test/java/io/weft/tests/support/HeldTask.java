package io.weft.tests.support;

import io.weft.tests.application.Hold;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.awaitility.Awaitility;

/**
 * The test's side of {@link Hold}: stops a task in the middle of its rows, or makes it fail there.
 */
public final class HeldTask implements AutoCloseable {
  private final Path folder;

  private HeldTask(Path folder) {
    this.folder = folder;
  }

  /** Registers the SQL function {@code hold}, which the task calls at this value. */
  public static HeldTask register(SparkSession session, Workspace workspace, long value) {
    return register(session, workspace, value, "hold");
  }

  /** As {@link #register(SparkSession, Workspace, long)}, for a function of another name. */
  public static HeldTask register(
      SparkSession session, Workspace workspace, long value, String function) {
    try {
      Path folder = Files.createTempDirectory(workspace.folder(), "hold-");
      session.udf().register(function, new Hold(folder, value), DataTypes.LongType);
      return new HeldTask(folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Makes tasks stop when they reach the value. */
  public HeldTask hold() {
    return create("hold");
  }

  /** Makes tasks fail when they reach the value. */
  public HeldTask fail() {
    return create("fail");
  }

  /** Waits until a task is held; returns its attempt. */
  public long awaitHeld() {
    Awaitility.await("a task that is held")
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(folder.resolve("held")));
    try {
      return Long.parseLong(Files.readString(folder.resolve("held")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Releases all tasks. */
  public void release() {
    Folders.delete(folder.resolve("hold"));
  }

  private HeldTask create(String file) {
    try {
      Files.createFile(folder.resolve(file));
      return this;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    release();
  }
}
