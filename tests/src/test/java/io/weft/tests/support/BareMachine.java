package io.weft.tests.support;

import io.weft.testgpus.DoubleBuild;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A machine with one simulated GPU and little else: a root folder with a shell and its tools,
 * without Java, compilers and network, for a user who is not root. The driver's library is where
 * NVIDIA installs it, NCCL where pip installs it into a virtual environment. Needs root; vanishes
 * when it is closed.
 */
public final class BareMachine implements AutoCloseable {
  /** A folder with a file that is called libcuda but is no library. */
  public static final String BROKEN = "/broken";

  /** A full file system. */
  public static final String FULL = "/full";

  /** The driver's library. */
  public static final String DRIVER = "/usr/lib/x86_64-linux-gnu/" + DoubleBuild.CUDA;

  /** NCCL in a virtual environment of Python. */
  public static final String NCCL =
      "/opt/some/.venv/lib/python3.11/site-packages/nvidia/nccl/lib/" + DoubleBuild.NCCL;

  /** An older NCCL that works too, but does not let two ranks share a GPU. */
  public static final String NCCL_2 = "/opt/other/lib/" + DoubleBuild.NCCL;

  private static final String USER = "4242";
  private static final Duration LIMIT = Duration.ofMinutes(1);
  private static final List<String> TOOLS =
      List.of(
          ("awk basename bash cat chmod cksum cp cut date dirname env find flock grep gzip head id"
                  + " ln ls mkdir mv paste realpath rm sed seq sort stat tail tar timeout touch tr"
                  + " truncate uname")
              .split(" "));
  private static final List<String> DEVICES = List.of("null", "zero", "urandom", "random");

  private final Path root;
  private final MountNamespace mounts;

  private BareMachine(Path root, MountNamespace mounts) {
    this.root = root;
    this.mounts = mounts;
  }

  /** Why this user cannot make one here; empty if it is possible. */
  public static Optional<String> unavailable() {
    if (!DoubleBuild.whyNot().isEmpty()) {
      return Optional.of(DoubleBuild.whyNot());
    }
    for (String tool : List.of("chroot", "unshare", "nsenter", "ip", "ldd", "xz", "flock")) {
      if (Stream.of("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/")
          .noneMatch(folder -> Files.isExecutable(Path.of(folder + tool)))) {
        return Optional.of("there is no " + tool);
      }
    }
    return MountNamespace.unavailable();
  }

  /**
   * Makes the machine.
   *
   * @param root a new folder
   * @param carried a folder that the machine sees as /carry, read-only
   */
  public static BareMachine open(Path root, Path carried) {
    try {
      for (String folder : List.of("proc", "dev/shm", "tmp", "carry", "full", "etc", "results")) {
        Files.createDirectories(root.resolve(folder));
      }
      tools(root);
      installDriver(root);
      Files.writeString(root.resolve("etc/passwd"), "someone:x:" + USER + ":" + USER + "::/:\n");
      Files.writeString(root.resolve("etc/hosts"), "127.0.0.1 localhost\n");
      return new BareMachine(root, MountNamespace.open(mounts(root, carried)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void tools(Path root) throws IOException {
    Files.createDirectories(root.resolve("usr/bin"));
    Files.createSymbolicLink(root.resolve("bin"), Path.of("usr/bin"));
    for (String name : TOOLS) {
      // Debian's awk is a link of a link.
      Path tool = Path.of(ChildProcess.run("sh", "-c", "command -v " + name).strip());
      copy(root, tool);
      for (Path library : libraries(tool)) {
        copy(root, library);
        copyCLibrary(root, library);
      }
    }
    Files.createSymbolicLink(root.resolve("usr/bin/sh"), Path.of("bash"));
  }

  /** The libraries of a program, with the loader. */
  private static List<Path> libraries(Path program) {
    return Stream.of(ChildProcess.run("ldd", program.toString()).split("\\s+"))
        .filter(word -> word.startsWith("/"))
        .map(Path::of)
        .toList();
  }

  /** All parts of the C library, which every machine has. */
  private static void copyCLibrary(Path root, Path library) throws IOException {
    if (library.endsWith("libc.so.6")) {
      for (String part : List.of("libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0")) {
        copy(root, library.resolveSibling(part));
      }
    }
  }

  private static void copy(Path root, Path file) throws IOException {
    Path to = root.resolve(file.toString().substring(1));
    if (Files.exists(file) && !Files.exists(to)) {
      Files.createDirectories(to.getParent());
      Files.copy(file.toRealPath(), to);
    }
  }

  private static void installDriver(Path root) throws IOException {
    Path built = root.resolve("built");
    DoubleBuild.into(built, "-DWEFT_DOUBLE_DEVICES=1");
    DoubleBuild.olderNccl(built, "old", "-DWEFT_DOUBLE_OLD", "-Wno-unused-function");
    DoubleBuild.olderNccl(built, "second", "-DWEFT_DOUBLE_WITHOUT_SHARING");
    DoubleBuild.olderCuda(built, "other", "-DWEFT_DOUBLE_INIT=803");
    move(built.resolve("other/" + DoubleBuild.CUDA), root.resolve("usr/some/driver"));
    move(built.resolve(DoubleBuild.CUDA), inside(root, DRIVER).getParent());
    move(built.resolve(DoubleBuild.NCCL), inside(root, NCCL).getParent());
    move(built.resolve("second/" + DoubleBuild.NCCL), inside(root, NCCL_2).getParent());
    move(
        built.resolve("old/" + DoubleBuild.NCCL),
        root.resolve("usr/lib/python3/dist-packages/nvidia/nccl/lib"));
    Folders.delete(built);
    Files.writeString(
        Files.createDirectories(root.resolve(BROKEN.substring(1))).resolve(DoubleBuild.CUDA),
        "no library\n");
  }

  private static Path inside(Path root, String path) {
    return root.resolve(path.substring(1));
  }

  private static void move(Path file, Path folder) throws IOException {
    Files.move(file, Files.createDirectories(folder).resolve(file.getFileName()));
  }

  private static String mounts(Path root, Path carried) {
    StringBuilder script = new StringBuilder();
    script.append("cd '").append(root).append("'\n");
    script.append("mount -t proc proc proc\n");
    script.append("mount -t tmpfs -o mode=1777 tmpfs dev/shm\n");
    script.append("mount -t tmpfs -o mode=1777,size=256k tmpfs full\n");
    script.append("mount --bind '").append(carried).append("' carry\n");
    script.append("mount -o remount,bind,ro carry\n");
    for (String device : DEVICES) {
      script.append(
          "touch dev/%s && mount --bind /dev/%s dev/%s%n".formatted(device, device, device));
    }
    script.append("ln -s /proc/self/fd dev/fd\n");
    script.append("chmod 1777 tmp\nchown ").append(USER).append(" results");
    return script.toString();
  }

  /** Starts a command of the machine's user, with these variables only. */
  public ChildProcess start(Map<String, String> environment, List<String> command) {
    List<String> inside = new ArrayList<>(List.of("unshare", "--net", "sh", "-c"));
    inside.add("ip link set lo up && exec \"$@\"");
    inside.addAll(List.of("sh", "chroot", "--userspec=" + USER + ":" + USER, root.toString()));
    inside.addAll(List.of("/usr/bin/env", "-i", "PATH=/usr/bin:/bin"));
    environment.forEach((name, value) -> inside.add(name + "=" + value));
    inside.addAll(command);
    return ChildProcess.start("machine", mounts.enter(inside), Path.of("/"), Map.of());
  }

  /** Runs a short command and returns its output. */
  public String run(String... command) {
    try (ChildProcess child = start(Map.of(), List.of(command))) {
      child.awaitSuccess(LIMIT);
      return child.output();
    }
  }

  /** A file of the machine. */
  public Path file(String path) {
    return inside(root, path);
  }

  /** A file of the machine in a file system that is mounted there. */
  public Path mounted(String path) {
    return mounts.outside(inside(root, path));
  }

  @Override
  public void close() {
    mounts.close();
  }
}
