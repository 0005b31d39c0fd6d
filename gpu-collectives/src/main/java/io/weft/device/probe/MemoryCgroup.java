package io.weft.device.probe;

import io.weft.memory.Bytes;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The memory limits of this process: those of its control group and of all groups above it. Reads
 * control groups of version 1 and 2, also both at once. A limit that is absent, "max" or too large
 * for any machine is no limit. A limit that cannot be read is no limit either, but is named in
 * {@link #unreadable}. A system without control groups has no limit.
 *
 * <p>The groups are found once. Their figures are read at each call, because limits and use change.
 * Thread-safe.
 */
public final class MemoryCgroup {
  /** Version 1 says "no limit" by the largest multiple of the page size, near 2^63. */
  private static final long NO_LIMIT = 1L << 60;

  /** The share of the last ten seconds, in percent, in which all tasks waited for memory. */
  private static final double STALLED_PERCENT = 10;

  private static final Pattern STALL = Pattern.compile("(?m)^full avg10=(\\d+(?:\\.\\d+)?)");
  private static final Pattern OCTAL = Pattern.compile("\\\\([0-7]{3})");

  private final Path processes;
  private final Path status;
  private final List<Group> groups = new ArrayList<>();
  private final List<String> unreadable = new ArrayList<>();

  /**
   * The figures of one limit.
   *
   * @param bytes the limit
   * @param usedBytes bytes in use, without files that the kernel can drop
   * @param file the file with the limit
   */
  public record Limit(long bytes, long usedBytes, Path file) {
    /** Bytes until the limit is reached; negative beyond it. */
    public long roomBytes() {
      return bytes - usedBytes;
    }

    @Override
    public String toString() {
      return "%s of %s in use (%s)".formatted(Bytes.text(usedBytes), Bytes.text(bytes), file);
    }
  }

  private MemoryCgroup(Path root) {
    processes = root.resolve("proc");
    status = processes.resolve("self/status");
    Path cgroup = root.resolve("proc/self/cgroup");
    if (!Files.exists(cgroup)) {
      return;
    }
    try {
      List<String> mounts = Files.readAllLines(root.resolve("proc/self/mountinfo"));
      for (String line : Files.readAllLines(cgroup)) {
        find(root, line, mounts);
      }
    } catch (IOException | RuntimeException e) {
      unreadable.add("the control groups of this process cannot be found: " + e);
    }
    groups.forEach(this::check);
  }

  /** The groups of this process. */
  public static MemoryCgroup ofThisProcess() {
    return of(ProbeOptions.defaults().root());
  }

  /** The groups of this process as the files below a root show them. */
  public static MemoryCgroup of(Path root) {
    return new MemoryCgroup(root);
  }

  /** Adds the groups of one line such as {@code 4:memory:/a/b} or {@code 0::/a/b}. */
  private void find(Path root, String line, List<String> mounts) {
    String[] parts = line.split(":", 3);
    boolean second = parts.length == 3 && parts[0].equals("0") && parts[1].isEmpty();
    boolean first = parts.length == 3 && List.of(parts[1].split(",", -1)).contains("memory");
    if (!first && !second) {
      return;
    }
    Optional<Mount> mount =
        mounts.stream().flatMap(each -> Mount.parse(each, second).stream()).findFirst();
    if (mount.isPresent()) {
      addAll(root.resolve(mount.get().point().substring(1)), mount.get().below(parts[2]), second);
    } else if (first) {
      unreadable.add("the memory limit of control group " + parts[2] + " is not visible here");
    }
  }

  /** Adds a group and the groups above it, up to the mount point. */
  private void addAll(Path mountPoint, String path, boolean second) {
    Path top = mountPoint.normalize();
    Path group = top.resolve(path).normalize();
    if (!group.startsWith(top) || !Files.isDirectory(group)) {
      // In a namespace of its own, a process may see its group as the root of the hierarchy only.
      group = top;
    }
    while (group != null && group.startsWith(top)) {
      groups.add(new Group(group, second));
      group = group.getParent();
    }
  }

  private void check(Group group) {
    for (String name : group.limitFiles()) {
      try {
        OptionalLong unused = read(group.folder().resolve(name));
      } catch (NumberFormatException e) {
        unreadable.add(cannotRead(group, name, e.getMessage()));
      } catch (IOException e) {
        unreadable.add(cannotRead(group, name, e.toString()));
      }
    }
  }

  private static String cannotRead(Group group, String name, String why) {
    return "the limit " + group.folder().resolve(name) + " cannot be read: " + why;
  }

  /** The limit with the least room; empty if there is no limit. */
  public Optional<Limit> tightest() {
    Optional<Limit> tightest = Optional.empty();
    for (Group group : groups) {
      Optional<Limit> limit = group.limit();
      if (limit.isPresent()
          && (tightest.isEmpty() || limit.get().roomBytes() < tightest.get().roomBytes())) {
        tightest = limit;
      }
    }
    return tightest;
  }

  /** Whether the processes of the group spend much of their time waiting for memory. */
  public boolean isStalled() {
    return groups.stream().anyMatch(Group::isStalled);
  }

  /** Why limits are unknown, one sentence for each; empty if all could be read. */
  public List<String> unreadable() {
    return List.copyOf(unreadable);
  }

  /** Bytes of this process's own memory that are in RAM; 0 if unknown. */
  public long privateBytes() {
    return statusBytes("RssAnon:");
  }

  /** Bytes of this process that are in RAM, with mapped files; 0 if unknown. */
  public long residentBytes() {
    return statusBytes("VmRSS:");
  }

  private long statusBytes(String name) {
    try {
      return number(Files.readAllLines(status), name) << 10;
    } catch (IOException | NumberFormatException e) {
      // Unknown counts as none: the process is then expected to grow to its full size.
      return 0;
    }
  }

  /**
   * Bytes of own memory, in RAM, of the processes that this one has started and of theirs; 0 if
   * unknown. Reads the status of all processes.
   */
  public long childrenBytes() {
    Map<Long, List<ChildProcess>> byParent = new HashMap<>();
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(processes, "[0-9]*")) {
      for (Path folder : folders) {
        ChildProcess.of(folder)
            .ifPresent(
                each -> byParent.computeIfAbsent(each.parent, id -> new ArrayList<>()).add(each));
      }
      long own = number(Files.readAllLines(status), "Pid:");
      return own == 0 ? 0 : sum(byParent, own);
    } catch (IOException | DirectoryIteratorException | NumberFormatException e) {
      return 0;
    }
  }

  /** Takes the processes out of the map, so that it ends also if the files name a circle. */
  private static long sum(Map<Long, List<ChildProcess>> byParent, long parent) {
    long bytes = 0;
    Deque<Long> parents = new ArrayDeque<>(List.of(parent));
    while (!parents.isEmpty()) {
      List<ChildProcess> found = byParent.remove(parents.remove());
      for (ChildProcess child : found == null ? List.<ChildProcess>of() : found) {
        bytes += child.bytes;
        parents.add(child.id);
      }
    }
    return bytes;
  }

  /** The number of a line such as "Pid: 12"; 0 if there is no such line. */
  private static long number(List<String> lines, String name) {
    for (String line : lines) {
      if (line.startsWith(name)) {
        return Long.parseLong(line.substring(name.length()).replace("kB", "").strip());
      }
    }
    return 0;
  }

  private record ChildProcess(long id, long parent, long bytes) {
    /** Reads a process's status; empty if it has ended or may not be read. */
    static Optional<ChildProcess> of(Path folder) {
      try {
        List<String> lines = Files.readAllLines(folder.resolve("status"));
        return Optional.of(
            new ChildProcess(
                number(lines, "Pid:"), number(lines, "PPid:"), number(lines, "RssAnon:") << 10));
      } catch (IOException | NumberFormatException e) {
        return Optional.empty();
      }
    }
  }

  /** Reads a file with one number; empty if the file is absent or says that there is no limit. */
  private static OptionalLong read(Path file) throws IOException {
    try {
      String text = Files.readString(file).strip();
      long value = text.equals("max") ? NO_LIMIT : number(text);
      return value < NO_LIMIT ? OptionalLong.of(value) : OptionalLong.empty();
    } catch (NoSuchFileException e) {
      return OptionalLong.empty();
    }
  }

  private static long number(String text) {
    if (text.isEmpty() || !text.chars().allMatch(digit -> digit >= '0' && digit <= '9')) {
      throw new NumberFormatException("'" + text + "' is no number of bytes");
    }
    // Nineteen digits and more may not fit into a long.
    return text.length() > 18 ? NO_LIMIT : Long.parseLong(text);
  }

  /**
   * The folder of one group.
   *
   * @param second whether its files are those of version 2
   */
  private record Group(Path folder, boolean second) {
    List<String> limitFiles() {
      return second ? List.of("memory.max", "memory.high") : List.of("memory.limit_in_bytes");
    }

    Optional<Limit> limit() {
      long bytes = NO_LIMIT;
      Path file = folder;
      for (String name : limitFiles()) {
        long each = readOrNone(name).orElse(NO_LIMIT);
        file = each < bytes ? folder.resolve(name) : file;
        bytes = Math.min(bytes, each);
      }
      if (!second) {
        // Groups above the mount point are not visible, but their limits are.
        long above = stat("hierarchical_memory_limit ").orElse(NO_LIMIT);
        file = above < bytes ? folder.resolve("memory.stat") : file;
        bytes = Math.min(bytes, above);
      }
      return bytes < NO_LIMIT ? Optional.of(new Limit(bytes, usedBytes(), file)) : Optional.empty();
    }

    /** The kernel drops cached files before it kills a process; shared memory is none of them. */
    private long usedBytes() {
      long used = readOrNone(second ? "memory.current" : "memory.usage_in_bytes").orElse(0);
      return used == 0 ? 0 : Math.max(0, used - droppableBytes());
    }

    private long droppableBytes() {
      return second
          ? stat("active_file ", "inactive_file ", "slab_reclaimable ").orElse(0)
          : stat("total_active_file ", "total_inactive_file ").orElse(0);
    }

    /**
     * The sum of figures of the group's statistics; empty if it has none of them. Searches the
     * whole text, because a loop over lines is compiled at length in each process.
     */
    private OptionalLong stat(String... names) {
      OptionalLong sum = OptionalLong.empty();
      try {
        String text = "\n" + Files.readString(folder.resolve("memory.stat"));
        for (String name : names) {
          int at = text.indexOf("\n" + name);
          if (at >= 0) {
            int begin = at + 1 + name.length();
            int end = text.indexOf('\n', begin);
            String figure = text.substring(begin, end < 0 ? text.length() : end).strip();
            sum = OptionalLong.of(sum.orElse(0) + number(figure));
          }
        }
      } catch (IOException | NumberFormatException e) {
        // Without the file, cached files count as in use.
        return sum;
      }
      return sum;
    }

    private OptionalLong readOrNone(String name) {
      try {
        return read(folder.resolve(name));
      } catch (IOException | NumberFormatException e) {
        // Reported when the groups were found.
        return OptionalLong.empty();
      }
    }

    boolean isStalled() {
      if (!second || limit().isEmpty()) {
        return false;
      }
      try {
        Matcher stall = STALL.matcher(Files.readString(folder.resolve("memory.pressure")));
        return stall.find() && Double.parseDouble(stall.group(1)) >= STALLED_PERCENT;
      } catch (IOException e) {
        // Kernels may be built without this file.
        return false;
      }
    }
  }

  /**
   * A mounted hierarchy.
   *
   * @param root the group at the mount point
   */
  private record Mount(String root, String point) {
    /** Parses a line of mountinfo; empty if it is no hierarchy with this version's memory files. */
    static Optional<Mount> parse(String line, boolean second) {
      int end = line.indexOf(" - ");
      String[] fields = line.split(" ", -1);
      String[] source = end < 0 ? new String[0] : line.substring(end + 3).split(" ", -1);
      if (fields.length < 5 || source.length < 3) {
        return Optional.empty();
      }
      boolean matches =
          second
              ? source[0].equals("cgroup2")
              : source[0].equals("cgroup") && List.of(source[2].split(",", -1)).contains("memory");
      return matches
          ? Optional.of(new Mount(unescaped(fields[3]), unescaped(fields[4])))
          : Optional.empty();
    }

    /** The path of a group relative to the mount point, without a leading slash. */
    String below(String group) {
      boolean within = root.equals("/") || group.equals(root) || group.startsWith(root + "/");
      String rest = within && !root.equals("/") ? group.substring(root.length()) : group;
      return rest.startsWith("/") ? rest.substring(1) : rest;
    }

    private static String unescaped(String text) {
      return OCTAL
          .matcher(text)
          .replaceAll(
              code ->
                  Matcher.quoteReplacement(
                      String.valueOf((char) Integer.parseInt(code.group(1), 8))));
    }
  }
}
