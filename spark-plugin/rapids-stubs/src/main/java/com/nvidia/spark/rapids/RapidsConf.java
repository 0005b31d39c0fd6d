package com.nvidia.spark.rapids;

import org.apache.spark.SparkConf;

/** Settings of spark-rapids. */
public class RapidsConf {
  private final SparkConf conf;

  public RapidsConf(SparkConf conf) {
    this.conf = conf;
  }

  public String rmmPool() {
    return conf.get("spark.rapids.memory.gpu.pool", "ASYNC");
  }

  public long shuffleTransportMaxReceiveInflightBytes() {
    return conf.getLong("spark.rapids.shuffle.transport.maxReceiveInflightBytes", 1L << 30);
  }

  public long shuffleUcxBounceBuffersSize() {
    return conf.getLong("spark.rapids.shuffle.ucx.bounceBuffers.size", 4L << 20);
  }

  public int shuffleUcxDeviceBounceBuffersCount() {
    return conf.getInt("spark.rapids.shuffle.ucx.bounceBuffers.device.count", 32);
  }

  public int shuffleMaxClientThreads() {
    return conf.getInt("spark.rapids.shuffle.maxClientThreads", 50);
  }

  public int shuffleClientThreadKeepAliveTime() {
    return conf.getInt("spark.rapids.shuffle.clientThreadKeepAlive", 30);
  }

  public long shuffleMaxMetadataSize() {
    return conf.getLong("spark.rapids.shuffle.maxMetadataSize", 500L << 10);
  }
}
