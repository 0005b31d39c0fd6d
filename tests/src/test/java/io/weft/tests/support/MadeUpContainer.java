package io.weft.tests.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * The files by which a process learns the limits of its control group, with figures that the test
 * chooses. The limits have no effect other than on what the process decides.
 */
public final class MadeUpContainer {
  private final Path root;

  /** Creates a container of this size in a workspace, with nothing in use. */
  public MadeUpContainer(Workspace workspace, long limitBytes) {
    try {
      root = Files.createTempDirectory(workspace.folder(), "container-");
      write("proc/self/cgroup", "0::/executor");
      write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
      write("sys/fs/cgroup/executor/memory.max", Long.toString(limitBytes));
      use(0);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Changes what the processes of the container use. */
  public void use(long bytes) {
    set("memory.current", Long.toString(bytes));
  }

  /** Writes any text to a file of the container's control group. */
  public void set(String file, String text) {
    try {
      write("sys/fs/cgroup/executor/" + file, text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The JVM option that puts a process into the container. */
  public String option() {
    return "-Dweft.probe.root=" + root;
  }

  /** Readers see the old or the new file, never a part of it. */
  private void write(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Path hidden = path.resolveSibling("new");
    Files.writeString(hidden, text + "\n");
    Files.move(hidden, path, StandardCopyOption.ATOMIC_MOVE);
  }
}
