package io.weft.examples.doctor;

import io.weft.device.probe.ProbeOptions;
import io.weft.examples.terminal.Units;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Finds limits and habits of a machine that can hurt executors. What cannot be read gives no
 * warning.
 *
 * @param root of the file system; tests use another one
 * @param user that would run executors
 * @param userId of that user
 */
record HostWarnings(Path root, String user, int userId) {
  private static final long MIN_OPEN_FILES = 8192;
  private static final long MIN_PROCESSES = 4096;
  private static final long MIN_PIDS = 1024;
  private static final long MIN_MAPS = 65530;

  /** The first number of a user that is no system user. */
  private static final int FIRST_USER = 1000;

  /** In a cgroup of version 1 a limit of this size means that there is none. */
  private static final long NO_LIMIT = 1L << 60;

  private static final Pattern REMOVE_IPC = Pattern.compile("(?i)^\\s*RemoveIPC\\s*=\\s*(\\w+)");

  /** The folders of systemd's configuration. The first one that has a file wins. */
  private static final List<String> SYSTEMD =
      List.of("etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd");

  /** The warnings for executors of this user on the probed machine. */
  static HostWarnings ofThisProcess(ProbeOptions options) throws IOException {
    int id = (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    return new HostWarnings(options.root(), System.getProperty("user.name"), id);
  }

  /** One line for each warning: what was found, and what to do. */
  List<String> lines() {
    return Stream.of(
            removeIpc(),
            limit("Max open files", MIN_OPEN_FILES, "connections, leases and files", "nofile"),
            limit("Max processes", MIN_PROCESSES, "threads", "nproc"),
            maps(),
            pids(),
            memory())
        .flatMap(Optional::stream)
        .toList();
  }

  private Optional<String> removeIpc() {
    boolean lingers = Files.exists(root.resolve("var/lib/systemd/linger").resolve(user));
    boolean concerned = Files.isDirectory(root.resolve("run/systemd/system"));
    if (!concerned || lingers || userId < FIRST_USER || !removesIpc()) {
      return Optional.empty();
    }
    return Optional.of(
        "RemoveIPC is on: when user %s logs out for the last time, systemd deletes the user's files in /dev/shm, also those of running executors. Set RemoveIPC=no in /etc/systemd/logind.conf, or run: loginctl enable-linger %s"
            .formatted(user, user));
  }

  /** Whether systemd deletes files. The last line of the last file wins; the default is yes. */
  private boolean removesIpc() {
    Map<String, Path> dropIns = new TreeMap<>();
    for (String folder : SYSTEMD) {
      for (Path file : files(root.resolve(folder).resolve("logind.conf.d"))) {
        dropIns.putIfAbsent(file.getFileName().toString(), file);
      }
    }
    List<Path> all = new ArrayList<>();
    SYSTEMD.stream()
        .map(folder -> root.resolve(folder).resolve("logind.conf"))
        .filter(Files::isRegularFile)
        .findFirst()
        .ifPresent(all::add);
    all.addAll(dropIns.values());
    String value = "yes";
    for (Path file : all) {
      for (String line : text(file).orElse("").lines().toList()) {
        Matcher matcher = REMOVE_IPC.matcher(line);
        value = matcher.find() ? matcher.group(1) : value;
      }
    }
    return List.of("yes", "y", "true", "t", "on", "1").contains(value.toLowerCase(Locale.ROOT));
  }

  private Optional<String> limit(String name, long wanted, String uses, String item) {
    Pattern pattern = Pattern.compile("(?m)^" + name + "\\s+(\\d+)");
    return text(root.resolve("proc/self/limits"))
        .map(pattern::matcher)
        .filter(Matcher::find)
        .map(matcher -> Long.parseLong(matcher.group(1)))
        .filter(found -> found < wanted)
        .map(
            found ->
                "%s: %d. An executor with many peers needs more for %s. Raise \"%s\" in /etc/security/limits.conf, or LimitNOFILE and LimitNPROC of the service, to %d or more"
                    .formatted(name, found, uses, item, wanted));
  }

  private Optional<String> maps() {
    return number(root.resolve("proc/sys/vm/max_map_count"))
        .filter(found -> found < MIN_MAPS)
        .map(
            found ->
                "vm.max_map_count: %d. Each mapped segment needs one map, and Java needs thousands. Run: sysctl -w vm.max_map_count=%d"
                    .formatted(found, MIN_MAPS));
  }

  private Optional<String> pids() {
    return lowest("pids", "pids.max", "pids.max")
        .filter(found -> found < MIN_PIDS)
        .map(
            found ->
                "pids limit of the cgroup: %d. An executor runs some hundred threads. Raise the container's limit (docker: --pids-limit, Kubernetes: podPidsLimit, systemd: TasksMax) to %d or more"
                    .formatted(found, MIN_PIDS));
  }

  private Optional<String> memory() {
    return lowest("memory", "memory.max", "memory.limit_in_bytes")
        .map(
            found ->
                "memory limit of the cgroup: %s. Files in /dev/shm count. The limit needs room for the executor's heap, spark.executor.memoryOverhead and spark.weft.memory.size together"
                    .formatted(Units.bytes(found)));
  }

  /** The lowest limit of this process's cgroup and its parents; empty if there is none. */
  private Optional<Long> lowest(String controller, String file, String fileOfVersion1) {
    long lowest = NO_LIMIT;
    for (String line : text(root.resolve("proc/self/cgroup")).orElse("").lines().toList()) {
      String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        lowest = Math.min(lowest, lowest(root.resolve("sys/fs/cgroup"), parts[2], file));
      } else if (parts.length == 3 && List.of(parts[1].split(",")).contains(controller)) {
        Path base = root.resolve("sys/fs/cgroup").resolve(controller);
        lowest = Math.min(lowest, lowest(base, parts[2], fileOfVersion1));
      }
    }
    return lowest < NO_LIMIT ? Optional.of(lowest) : Optional.empty();
  }

  private static long lowest(Path base, String cgroup, String file) {
    long lowest = NO_LIMIT;
    Path folder = base.resolve(cgroup.substring(1)).normalize();
    while (folder != null && folder.startsWith(base)) {
      lowest = Math.min(lowest, number(folder.resolve(file)).orElse(NO_LIMIT));
      folder = folder.getParent();
    }
    return lowest;
  }

  private static Optional<Long> number(Path file) {
    return text(file)
        .map(String::strip)
        .filter(text -> text.matches("\\d{1,18}"))
        .map(Long::valueOf);
  }

  private static List<Path> files(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(file -> file.toString().endsWith(".conf")).toList();
    } catch (IOException | UncheckedIOException e) {
      return List.of();
    }
  }

  private static Optional<String> text(Path file) {
    try {
      return Optional.of(Files.readString(file));
    } catch (IOException | UncheckedIOException e) {
      return Optional.empty();
    }
  }
}
