package com.nvidia.spark.rapids.spark413;

import org.apache.spark.SparkConf;
import org.apache.spark.shuffle.sort.SortShuffleManager;

/** A stand-in for spark-rapids' manager; carries shuffles as Spark does. */
public class RapidsShuffleManager extends SortShuffleManager {
  public RapidsShuffleManager(SparkConf conf, boolean isDriver) {
    super(conf);
  }
}
