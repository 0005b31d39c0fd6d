package io.weft.tests.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;

/**
 * A memory control group below this process's own. The kernel kills a process in it when the group
 * exceeds its limit. Making one needs root.
 */
public final class RealContainer implements AutoCloseable {
  private static final Path FIRST = Path.of("/sys/fs/cgroup/memory");
  private static final Path SECOND = Path.of("/sys/fs/cgroup");

  private final Path group;

  private RealContainer(Path group) {
    this.group = group;
  }

  /** Why this process cannot make a group; empty if it can. */
  public static Optional<String> unavailable() {
    try (RealContainer container = open(1L << 30)) {
      return Files.exists(container.group) ? Optional.empty() : Optional.of("it vanished");
    } catch (UncheckedIOException e) {
      return Optional.of("memory control groups cannot be made here (this needs root): " + e);
    }
  }

  /** Makes a group with a limit. */
  public static RealContainer open(long limitBytes) {
    boolean second = Files.exists(SECOND.resolve("cgroup.controllers"));
    Path group = (second ? SECOND : FIRST).resolve("weft-test-" + ProcessHandle.current().pid());
    try {
      Files.createDirectory(group);
      Files.writeString(
          group.resolve(second ? "memory.max" : "memory.limit_in_bytes"),
          Long.toString(limitBytes));
      return new RealContainer(group);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Wraps a command to run in the group. */
  public List<String> enter(List<String> command) {
    String script = "echo $$ > " + group.resolve("cgroup.procs") + " && exec \"$@\"";
    List<String> entered = new ArrayList<>(List.of("sh", "-c", script, "sh"));
    entered.addAll(command);
    return entered;
  }

  /** Removes the group after its processes have ended. */
  @Override
  public void close() {
    Awaitility.await("an empty control group " + group)
        .atMost(3, TimeUnit.MINUTES)
        .ignoreExceptions()
        .until(() -> Files.deleteIfExists(group));
  }
}
