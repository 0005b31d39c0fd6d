package io.weft.shuffle;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.weft.device.probe.MemoryCgroup;
import io.weft.device.probe.MemoryCgroup.Limit;
import io.weft.memory.Bytes;
import io.weft.memory.MemoryLimit;
import io.weft.memory.SettingNames;
import io.weft.shuffle.ExchangeOptions.MemoryOptions;
import io.weft.shuffle.store.HostRoot;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * How much shared memory an executor may use: the part of the file system that is for Weft, and
 * what the JVM leaves of the container. The budget is fixed at the start. Before each new segment,
 * {@link #objection} compares it with what is free by then.
 *
 * <p>Thread-safe.
 */
public final class MemoryBudget implements MemoryLimit {
  private static final long MAX_AUTOMATIC_BYTES = 4L << 30;

  private static final double AUTOMATIC_PART = 0.25;

  /** With fewer segments, tasks would wait for each other's segments and reuse none. */
  private static final int LEAST_SEGMENTS = 2;

  /** For code, classes, stacks and small direct buffers: what Spark adds to a heap by default. */
  private static final long LEAST_JVM_BYTES = 384L << 20;

  private static final int HEAP_PER_JVM_BYTE = 10;

  /** Bytes of a container that stay free even if the JVM has its full size. */
  private static final long HEADROOM_BYTES = 64L << 20;

  /** How long the memory of child processes is taken as known: all processes have to be read. */
  private static final long CHILDREN_NANOS = TimeUnit.SECONDS.toNanos(5);

  /** How long an objection holds, because reading the figures costs more than an allocation. */
  private static final long OBJECTION_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final MemoryOptions options;
  private final HostRoot root;
  private final MemoryCgroup cgroup;
  private final SettingNames names;
  private final long processBytes;

  /** Mapped files of the JVM itself, which are part of what it needs beside its heap. */
  private final long libraryBytes;

  private final long bytes;
  private final List<String> remarks = new ArrayList<>();
  private volatile Objection last;
  private volatile Children children;

  private record Objection(String reason, long nanoTime) {}

  private record Children(long bytes, long nanoTime) {}

  /**
   * Computes the budget.
   *
   * @param root the folder of the segments
   * @param processBytes what this process may take beside shared memory, see {@link #processBytes}
   * @param names the names of options in messages
   */
  MemoryBudget(
      MemoryOptions options,
      HostRoot root,
      MemoryCgroup cgroup,
      long processBytes,
      SettingNames names) {
    this.options = options;
    this.root = root;
    this.cgroup = cgroup;
    this.processBytes = processBytes;
    this.names = names;
    this.libraryBytes = cgroup.residentBytes() - cgroup.privateBytes();
    long most = mostBytes();
    Optional<Share> share = share().filter(any -> root.sharedMemory());
    bytes = share.isPresent() ? within(most, share.get()) : most;
    remarkOnSize();
    for (String reason : cgroup.unreadable()) {
      remarks.add(
          "%s, so it counts as no limit. Set %s to what the container has room for"
              .formatted(reason, names.of("memoryBytes")));
    }
    remarkOnDisks();
  }

  /** The budget of this process. */
  static MemoryBudget of(MemoryOptions options, HostRoot root, SettingNames names) {
    return new MemoryBudget(
        options,
        root,
        MemoryCgroup.ofThisProcess(),
        processBytes(options.grant().otherBytes()),
        names);
  }

  /**
   * The bytes that this process may take beside shared memory: its heap, its direct memory if that
   * is limited, what the JVM itself needs, and {@code otherBytes}.
   */
  static long processBytes(long otherBytes) {
    long heap = Runtime.getRuntime().maxMemory();
    return heap + directBytes() + jvmBytes(heap) + otherBytes;
  }

  /** The bytes that a JVM with such a heap needs beside it. */
  public static long jvmBytes(long heapBytes) {
    return Math.max(LEAST_JVM_BYTES, heapBytes / HEAP_PER_JVM_BYTE);
  }

  /** The limit of direct memory; 0 without one, because hardly any process uses the default. */
  private static long directBytes() {
    try {
      HotSpotDiagnosticMXBean options =
          ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
      return options == null
          ? 0
          : Long.parseLong(options.getVMOption("MaxDirectMemorySize").getValue());
    } catch (IllegalArgumentException e) {
      // Another JVM, without this option.
      return 0;
    }
  }

  /**
   * The default budget on a file system, without a container: the smaller of 4 GiB and a quarter.
   *
   * @param root a folder on it
   */
  public static long automaticBytes(Path root, double hostFraction) {
    double part = Math.min(AUTOMATIC_PART, hostFraction);
    return Math.min(MAX_AUTOMATIC_BYTES, (long) (root.toFile().getTotalSpace() * part));
  }

  /** The budget if the container has no limit. It is 0 if plain text would reach a disk. */
  private long mostBytes() {
    if (options.encryption().isPresent() && !root.sharedMemory()) {
      return 0;
    }
    return options.memoryBytes() > 0
        ? options.memoryBytes()
        : automaticBytes(root.path(), options.grant().hostFraction());
  }

  /**
   * What is left of a limit.
   *
   * @param limit of the container
   * @param processBytes that this process and its children may still take
   */
  private record Share(Limit limit, long processBytes) {
    long leftBytes() {
      return limit.roomBytes() - processBytes;
    }

    @Override
    public String toString() {
      return limit + ", and the JVM may take " + Bytes.text(processBytes) + " more";
    }
  }

  /** The share of the tightest limit; empty if there is no limit. */
  private Optional<Share> share() {
    long more = Math.max(HEADROOM_BYTES, processBytes - cgroup.privateBytes());
    // A control group counts what its processes have; the figures of a grant are this process's.
    Optional<Share> tightest =
        cgroup.tightest().map(limit -> new Share(limit, more + moreOfChildren()));
    if (!countsMappedFiles()) {
      return tightest;
    }
    Limit granted =
        new Limit(
            options.grant().containerBytes().getAsLong(),
            cgroup.residentBytes() - libraryBytes,
            Path.of(names.of("containerBytes")));
    Share share = new Share(granted, more + options.grant().childBytes());
    return tightest
        .filter(each -> each.leftBytes() < share.leftBytes())
        .or(() -> Optional.of(share));
  }

  /** The bytes that child processes may take beyond those that they have. */
  private long moreOfChildren() {
    long granted = options.grant().childBytes();
    if (granted == 0) {
      return 0;
    }
    Children known = children;
    long now = System.nanoTime();
    if (known == null || now - known.nanoTime > CHILDREN_NANOS) {
      known = new Children(cgroup.childrenBytes(), now);
      children = known;
    }
    return Math.max(0, granted - known.bytes);
  }

  /** The budget in a container: the user's, or at most what is left. */
  private long within(long most, Share share) {
    long left = share.leftBytes();
    if (options.memoryBytes() > 0) {
      if (left < most) {
        remarks.add(
            ("%1$s is %2$s, but the container leaves %3$s for it, and blocks beyond that go to"
                    + " Spark's local folders: %4$s. Raise %5$s, or set %1$s to 0")
                .formatted(
                    names.of("memoryBytes"),
                    Bytes.text(most),
                    text(left),
                    share,
                    names.of("containerBytes")));
      }
      return most;
    }
    long segment = options.segmentBytes();
    if (left >= Math.min(most, LEAST_SEGMENTS * segment)) {
      return Math.min(most, left / segment * segment);
    }
    remarks.add(
        ("Blocks go to Spark's local folders because the container leaves %s for shared"
                + " memory: %s. Raise %s")
            .formatted(text(left), share, names.of("containerBytes")));
    return 0;
  }

  /** Says that the user's size can never be reached, unless the container's limit says so. */
  private void remarkOnSize() {
    double fraction = options.grant().hostFraction();
    long allowed = (long) (root.path().toFile().getTotalSpace() * fraction);
    if (root.sharedMemory() && remarks.isEmpty() && options.memoryBytes() > allowed) {
      remarks.add(
          ("%s is %s, but of %s all programs together may fill %s (%s %s), and blocks beyond that"
                  + " go to Spark's local folders")
              .formatted(
                  names.of("memoryBytes"),
                  Bytes.text(options.memoryBytes()),
                  fileSystem(root.path()),
                  Bytes.text(allowed),
                  names.of("hostFraction"),
                  fraction));
    }
  }

  /**
   * Names file systems instead of folders: each executor has local folders of its own, but a remark
   * is logged once for a host only if all its executors make the same.
   */
  private void remarkOnDisks() {
    options.localDirs().stream()
        .filter(HostRoot::isMemory)
        .map(MemoryBudget::fileSystem)
        .distinct()
        .forEach(
            memory ->
                remarks.add(
                    ("Local folders are in memory, on %s, so blocks that do not fit into shared"
                            + " memory still use memory of the container. Set %s to a disk")
                        .formatted(memory, names.of("diskFolders"))));
  }

  private static String fileSystem(Path folder) {
    try {
      return Files.getFileStore(folder).toString();
    } catch (IOException e) {
      // Deleted meanwhile.
      return folder.toString();
    }
  }

  private static String text(long bytes) {
    return bytes <= 0 ? "nothing" : Bytes.text(bytes);
  }

  /** The budget in shared memory; 0 if all blocks go to the local folders. */
  public long bytes() {
    return bytes;
  }

  /** What the user should know about the budget: sentences with figures, or none. */
  List<String> remarks() {
    return List.copyOf(remarks);
  }

  /** Whether mapped files count against the container. */
  boolean countsMappedFiles() {
    return options.grant().containerBytes().isPresent();
  }

  /** Whether the container is so full that unused memory must be returned now. */
  boolean isShort() {
    return cgroup.isStalled() || share().filter(share -> share.leftBytes() < 0).isPresent();
  }

  @Override
  public Optional<String> objection(long more) {
    // An extent longer than a segment is rare, and follows the deletion of idle segments.
    boolean regular = more <= options.segmentBytes();
    Objection earlier = last;
    long now = System.nanoTime();
    if (regular && earlier != null && now - earlier.nanoTime < OBJECTION_NANOS) {
      return Optional.of(earlier.reason);
    }
    Optional<String> objection =
        root.sharedMemory() ? quota(more).or(() -> pressure(more)) : Optional.empty();
    if (regular) {
      objection.ifPresent(reason -> last = new Objection(reason, now));
    }
    return objection;
  }

  /** The quota counts all files, so it holds for all users and programs together. */
  private Optional<String> quota(long more) {
    double fraction = options.grant().hostFraction();
    File folder = root.path().toFile();
    long total = folder.getTotalSpace();
    long used = total - folder.getUsableSpace();
    return used + more > total * fraction
        ? Optional.of(
            "%s has %s of %s in use, and with %s more it would exceed the part that %s allows (%s)"
                .formatted(
                    folder,
                    Bytes.text(used),
                    Bytes.text(total),
                    Bytes.text(more),
                    names.of("hostFraction"),
                    fraction))
        : Optional.empty();
  }

  private Optional<String> pressure(long more) {
    Optional<Share> share = share();
    if (share.isPresent() && share.get().leftBytes() < more) {
      return Optional.of(
          "the container leaves %s for %s of shared memory (%s)"
              .formatted(text(share.get().leftBytes()), Bytes.text(more), share.get()));
    }
    return cgroup.isStalled()
        ? Optional.of("the container is short of memory: its processes wait for it")
        : Optional.empty();
  }
}
