package io.weft.spark.config;

import static io.weft.spark.config.MemorySettings.SPILL_PRIVATE_MEMORY;

import io.weft.memory.ArenaOptions.PrivateMemory;
import io.weft.spark.config.Setting.InvalidSettingException;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;

/**
 * Checks that private memory is large enough for the tasks that an executor runs at once. It is
 * used only where disks are encrypted. Tasks with too little memory wait for each other; less than
 * one chunk per task is an error.
 */
public final class SpillMemory {
  /** A task holds the chunk it reads, the chunk before it, and the chunk it writes. */
  private static final int CHUNKS_OF_A_TASK = 3;

  private static final int MANY_TASKS = 32;
  private static final long LEAST_CHUNK = 4L << 10;
  private static final long MAX_CHUNK = 4L << 20;

  /** Minimum number of chunks in a segment. With fewer, open chunks would waste whole segments. */
  private static final long CHUNKS_PER_SEGMENT = 16;

  private static final String ADVICE = ". Raise it, or make spark.weft.memory.segmentSize smaller";

  private static final Pattern LOCAL = Pattern.compile("local\\[(\\d+|\\*)(,.*)?]");
  private static final Pattern CLUSTER = Pattern.compile("local-cluster\\[\\d+,\\s*(\\d+),.*]");

  private SpillMemory() {}

  /**
   * Returns the maximum bytes of a chunk, for a segment size. A chunk of a single row may be
   * longer.
   */
  public static long maxChunkBytes(long segmentBytes) {
    return Math.min(MAX_CHUNK, Math.max(LEAST_CHUNK, segmentBytes / CHUNKS_PER_SEGMENT));
  }

  /** Returns the private memory of an executor, for applications with encrypted disks. */
  public static PrivateMemory of(SparkConf conf) {
    return new PrivateMemory(
        SPILL_PRIVATE_MEMORY.get(conf), assumedTasks(conf), WeftSettings.FETCH_TIMEOUT.get(conf));
  }

  /**
   * Checks an application at its start.
   *
   * @throws InvalidSettingException if there is less than a chunk for each task
   */
  public static void check(SparkConf conf) {
    if (isShort(conf, 1)) {
      throw new InvalidSettingException(
          describe(conf, "which is less than a chunk for each") + ADVICE);
    }
  }

  /** Returns a warning if tasks may wait for each other until they time out. */
  public static Optional<String> remark(SparkConf conf) {
    return isShort(conf, CHUNKS_OF_A_TASK)
        ? Optional.of(
            describe(conf, "which is less than the three that each may need")
                + ": while shared memory is full, they wait for each other and may time out"
                + ADVICE)
        : Optional.empty();
  }

  private static boolean isShort(SparkConf conf, int chunks) {
    OptionalInt tasks = tasks(conf);
    return WeftSettings.isDiskEncrypted(conf)
        && tasks.isPresent()
        && transientBytes(conf) < chunks * chunkBytes(conf) * tasks.getAsInt();
  }

  private static long transientBytes(SparkConf conf) {
    return of(conf).transientBytes(MemorySettings.segmentBytes(conf));
  }

  private static long chunkBytes(SparkConf conf) {
    return maxChunkBytes(MemorySettings.segmentBytes(conf));
  }

  private static String describe(SparkConf conf, String finding) {
    String text =
        "%s is %d bytes, of which %d are for the %d tasks that an executor runs at once, %s; a"
            + " chunk"
            + " has up to %d bytes";
    return text.formatted(
        SPILL_PRIVATE_MEMORY.key(),
        SPILL_PRIVATE_MEMORY.get(conf),
        transientBytes(conf),
        tasks(conf).orElseThrow(),
        finding,
        chunkBytes(conf));
  }

  /**
   * Returns the assumed number of concurrent tasks; too many rather than too few if the size of
   * executors is unknown.
   */
  static int assumedTasks(SparkConf conf) {
    return tasks(conf).orElse(Math.max(MANY_TASKS, Runtime.getRuntime().availableProcessors()));
  }

  /** Returns the tasks that an executor runs at once; empty if only the executor knows. */
  static OptionalInt tasks(SparkConf conf) {
    OptionalInt cores = cores(conf);
    int each = Math.max(1, conf.getInt("spark.task.cpus", 1));
    return cores.isPresent()
        ? OptionalInt.of(Math.max(1, cores.getAsInt() / each))
        : OptionalInt.empty();
  }

  private static OptionalInt cores(SparkConf conf) {
    String master = conf.get("spark.master", "");
    Matcher local = LOCAL.matcher(master);
    if (local.matches()) {
      return OptionalInt.of(
          local.group(1).equals("*")
              ? Runtime.getRuntime().availableProcessors()
              : Integer.parseInt(local.group(1)));
    }
    Matcher cluster = CLUSTER.matcher(master);
    if (cluster.matches()) {
      return OptionalInt.of(Integer.parseInt(cluster.group(1)));
    }
    int cores = conf.getInt("spark.executor.cores", 0);
    return cores > 0 ? OptionalInt.of(cores) : OptionalInt.empty();
  }
}
