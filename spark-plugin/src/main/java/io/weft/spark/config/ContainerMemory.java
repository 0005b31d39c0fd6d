package io.weft.spark.config;

import static io.weft.spark.config.MemorySettings.SIZE;

import io.weft.memory.Bytes;
import io.weft.shuffle.ExchangeOptions.MemoryGrant;
import io.weft.shuffle.MemoryBudget;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.SparkConf;

/**
 * The memory that Spark requests for an executor's container. YARN and Kubernetes limit a container
 * to it; the other cluster managers use the heap only. Sizes of resource profiles are unknown here.
 */
public final class ContainerMemory {
  static final String OVERHEAD = "spark.executor.memoryOverhead";
  private static final long MIB = 1L << 20;
  private static final String DRIVER = "driver";

  private ContainerMemory() {}

  /** What an executor was given of its host's memory. */
  public static MemoryGrant grant(SparkConf conf, String executorId) {
    boolean counted = isYarn(conf) && !executorId.equals(DRIVER);
    return new MemoryGrant(
        MemorySettings.HOST_FRACTION.get(conf),
        offHeapBytes(conf) + privateBytes(conf),
        pythonBytes(conf),
        counted
            ? OptionalLong.of(
                heapBytes(conf) + overheadBytes(conf) + offHeapBytes(conf) + pythonBytes(conf))
            : OptionalLong.empty());
  }

  /** Returns a warning if the overhead is too small for the configured size of shared memory. */
  public static Optional<String> remark(SparkConf conf) {
    long shared = SIZE.get(conf);
    if (!isLimited(conf) || shared == 0) {
      return Optional.empty();
    }
    long overhead = overheadBytes(conf);
    long jvm = MemoryBudget.jvmBytes(heapBytes(conf)) + privateBytes(conf);
    String text =
        "%s is %s, but the container also holds %s of shared memory (%s) and about %s that the JVM"
            + " needs beside its heap: blocks beyond the rest go to Spark's local folders. Set it"
            + " to %dm, or %s to 0";
    return overhead < shared + jvm
        ? Optional.of(
            text.formatted(
                OVERHEAD,
                Bytes.text(overhead),
                Bytes.text(shared),
                SIZE,
                Bytes.text(jvm),
                (shared + jvm + MIB - 1) / MIB,
                SIZE))
        : Optional.empty();
  }

  private static boolean isLimited(SparkConf conf) {
    return isYarn(conf) || conf.get("spark.master", "").startsWith("k8s:");
  }

  /** YARN adds up the resident memory of a container's processes, which no control group tells. */
  private static boolean isYarn(SparkConf conf) {
    return conf.get("spark.master", "").startsWith("yarn");
  }

  private static long heapBytes(SparkConf conf) {
    return conf.getSizeAsMb("spark.executor.memory", "1g") * MIB;
  }

  private static long overheadBytes(SparkConf conf) {
    if (conf.contains(OVERHEAD)) {
      return conf.getSizeAsMb(OVERHEAD) * MIB;
    }
    boolean kubernetes = !isYarn(conf) && conf.contains("spark.kubernetes.memoryOverheadFactor");
    double factor =
        conf.getDouble(
            "spark.executor.memoryOverheadFactor",
            kubernetes ? conf.getDouble("spark.kubernetes.memoryOverheadFactor", 0.1) : 0.1);
    long least = conf.getSizeAsMb("spark.executor.minMemoryOverhead", "384m") * MIB;
    return Math.max(least, (long) (heapBytes(conf) * factor) / MIB * MIB);
  }

  /** Spark requests this memory in addition to heap and overhead. */
  private static long offHeapBytes(SparkConf conf) {
    boolean offHeap = conf.getBoolean("spark.memory.offHeap.enabled", false);
    return offHeap ? conf.getSizeAsBytes("spark.memory.offHeap.size", "0") : 0;
  }

  /** Spark requests this memory as well, for the Python processes of an executor. */
  private static long pythonBytes(SparkConf conf) {
    return conf.getSizeAsMb("spark.executor.pyspark.memory", "0") * MIB;
  }

  private static long privateBytes(SparkConf conf) {
    return WeftSettings.isDiskEncrypted(conf) ? MemorySettings.SPILL_PRIVATE_MEMORY.get(conf) : 0;
  }
}
