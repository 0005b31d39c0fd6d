package io.weft.spark.config;

import static io.weft.spark.config.WeftSettings.SPILL_PRIVATE_MEMORY;

import io.weft.memory.PrivateMemory;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;

/**
 * Whether private memory, where disks are encrypted, is enough for the tasks that an executor runs
 * at once: those that have too little wait for each other, and less than a chunk each is refused.
 */
public final class SpillMemory {
  /** A task reads a chunk while it still has the one before it, and writes a third. */
  private static final int CHUNKS_OF_A_TASK = 3;

  private static final int MANY_TASKS = 32;
  private static final long LEAST_CHUNK = 4L << 10;
  private static final long MOST_CHUNK = 4L << 20;

  /** A segment has room for at least so many chunks, or open ones would waste whole segments. */
  private static final long CHUNKS_PER_SEGMENT = 16;

  private static final String ADVICE = ". Raise it, or make spark.weft.memory.segmentSize smaller";

  private static final Pattern LOCAL = Pattern.compile("local\\[(\\d+|\\*)(,.*)?]");
  private static final Pattern CLUSTER = Pattern.compile("local-cluster\\[\\d+,\\s*(\\d+),.*]");

  private SpillMemory() {}

  /** Bytes no chunk grows beyond, unless one row needs more, in segments of that size. */
  public static long mostChunkBytes(long segmentBytes) {
    return Math.min(MOST_CHUNK, Math.max(LEAST_CHUNK, segmentBytes / CHUNKS_PER_SEGMENT));
  }

  /** How much private memory an executor may use where disks are encrypted, and for whom. */
  public static PrivateMemory of(SparkConf conf) {
    return new PrivateMemory(
        SPILL_PRIVATE_MEMORY.get(conf), users(conf), WeftSettings.FETCH_TIMEOUT.get(conf));
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

  /** What to know, where tasks may wait for each other until they fail. */
  public static Optional<String> remark(SparkConf conf) {
    return isShort(conf, CHUNKS_OF_A_TASK)
        ? Optional.of(
            describe(conf, "which is less than the three that each may need")
                + ": while shared memory is full they wait for each other, and may fail of it"
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
    return of(conf).transientBytes(WeftSettings.segmentBytes(conf));
  }

  private static long chunkBytes(SparkConf conf) {
    return mostChunkBytes(WeftSettings.segmentBytes(conf));
  }

  private static String describe(SparkConf conf, String finding) {
    String text =
        "%s is %d bytes, of which %d are for the %d tasks that an executor runs at once, %s; a chunk"
            + " has up to %d bytes";
    return text.formatted(
        SPILL_PRIVATE_MEMORY.key(),
        SPILL_PRIVATE_MEMORY.get(conf),
        transientBytes(conf),
        tasks(conf).orElseThrow(),
        finding,
        chunkBytes(conf));
  }

  /** Tasks that are taken to run at once: on executors of unknown size, rather too many. */
  static int users(SparkConf conf) {
    return tasks(conf).orElse(Math.max(MANY_TASKS, Runtime.getRuntime().availableProcessors()));
  }

  /** Tasks that an executor runs at once; empty where only the executor will know. */
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
