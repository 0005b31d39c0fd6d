package io.weft.spark.compat;

import java.util.NoSuchElementException;
import org.apache.spark.SparkConf;
import org.apache.spark.package$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.Utils;

/** What the running Spark version can do. Stateless. */
public final class SparkFeatures {
  /** Prefix of the settings of row checksums, which Spark 4.0 does not have. */
  public static final String ROW_CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum.";

  private SparkFeatures() {}

  /**
   * Whether Spark compares checksums of rows to detect a repeated map task with other output.
   * Always false on Spark 4.0.
   */
  public static boolean keepsRowChecksums(SQLConf conf) {
    return isOn(conf, ROW_CHECKSUMS + "enabled")
        || isOn(conf, ROW_CHECKSUMS + "enableFullRetryOnMismatch");
  }

  /**
   * Whether push-based shuffle is on and a shuffle manager cannot exclude single shuffles from it.
   * From Spark 4.2 on, a manager can exclude a shuffle in {@code registerShuffle}; earlier versions
   * reset the flag afterwards.
   */
  public static boolean forcesPushBasedShuffle(SparkConf conf) {
    String version = package$.MODULE$.SPARK_VERSION();
    return (version.startsWith("4.0.") || version.startsWith("4.1."))
        && Utils.isPushBasedShuffleEnabled(conf, true, true);
  }

  private static boolean isOn(SQLConf conf, String key) {
    try {
      return Boolean.parseBoolean(conf.getConfString(key));
    } catch (NoSuchElementException e) {
      return false;
    }
  }
}
