package io.weft.tests.support;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A separate view of the file system, with small, full or read-only file systems mounted in it.
 * Only processes that are started with {@link #enter} see it, and it vanishes when the process that
 * holds it ends.
 */
public final class MountNamespace implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofMinutes(3);

  private final ChildProcess holder;

  private MountNamespace(ChildProcess holder) {
    this.holder = holder;
  }

  /** Why this user cannot mount; empty if mounts are possible. */
  public static Optional<String> unavailable() {
    List<String> attempt = List.of("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt");
    try (ChildProcess child = ChildProcess.start("unshare", attempt, Path.of("/"), Map.of())) {
      return child.awaitExit(LIMIT) == 0
          ? Optional.empty()
          : Optional.of("file systems cannot be mounted here (this needs root): " + child.output());
    }
  }

  /**
   * Opens a view.
   *
   * @param script that the shell runs in it, such as mounts; an error of any line is an error
   */
  public static MountNamespace open(String script) {
    String wrapped = "set -e\n" + script + "\necho mounted; read line || true";
    List<String> command =
        List.of("unshare", "--mount", "--propagation", "private", "sh", "-c", wrapped);
    ChildProcess holder = ChildProcess.start("mounts", command, Path.of("/"), Map.of());
    try {
      holder.awaitLine("^mounted$", LIMIT);
      return new MountNamespace(holder);
    } catch (AssertionError e) {
      holder.close();
      throw e;
    }
  }

  /** Wraps a command to run in the view. */
  public List<String> enter(List<String> command) {
    List<String> entered =
        new ArrayList<>(List.of("nsenter", "--mount=/proc/" + holder.pid() + "/ns/mnt", "--"));
    entered.addAll(command);
    return entered;
  }

  /** The path of a folder of the view for this process. */
  public Path outside(Path inside) {
    Path path = Path.of("/proc/" + holder.pid() + "/root" + inside);
    if (!Files.exists(path)) {
      throw new IllegalArgumentException(inside + " is not in the view");
    }
    return path;
  }

  @Override
  public void close() {
    holder.close();
  }
}
