package io.weft.spark.config;

import org.apache.spark.SparkConf;

/** Spark's settings for decommissioned executors. */
public final class Decommission {
  private Decommission() {}

  /** Whether a decommissioned executor sends its map outputs to other executors. */
  public static boolean migratesShuffles(SparkConf conf) {
    return conf.getBoolean("spark.decommission.enabled", false)
        && conf.getBoolean("spark.storage.decommission.enabled", false)
        && conf.getBoolean("spark.storage.decommission.shuffleBlocks.enabled", true);
  }
}
