package com.nvidia.spark.rapids.shuffle;

/** Memory that messages lie in. */
public interface TransportBuffer extends AutoCloseable {
  long getAddress();

  long getLength();

  @Override
  void close();
}
