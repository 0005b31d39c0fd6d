package io.weft.spark.compat;

import io.weft.spark.compat.PortableDependency.RowChecksumMode;
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
   * Returns what Spark does with checksums of rows to detect a repeated map task with other output.
   * Spark 4.0 does nothing.
   */
  public static RowChecksumMode rowChecksums(SQLConf conf) {
    return new RowChecksumMode(
        isOn(conf, ROW_CHECKSUMS + "enabled"),
        isOn(conf, ROW_CHECKSUMS + "enableFullRetryOnMismatch"),
        isOn(conf, ROW_CHECKSUMS + "enableQueryLevelRollbackOnMismatch"));
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
