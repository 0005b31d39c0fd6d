package io.weft.spark.config;

import org.apache.spark.SparkConf;

/** What Spark's settings say about executors that are told to end. */
public final class Decommission {
  private Decommission() {}

  /** Whether an executor that is decommissioned sends its map outputs to those that live on. */
  public static boolean migratesShuffles(SparkConf conf) {
    return conf.getBoolean("spark.decommission.enabled", false)
        && conf.getBoolean("spark.storage.decommission.enabled", false)
        && conf.getBoolean("spark.storage.decommission.shuffleBlocks.enabled", true);
  }
}
