package com.nvidia.spark.rapids.shuffle;

/** Memory of messages. */
public interface TransportBuffer extends AutoCloseable {
  long getAddress();

  long getLength();

  @Override
  void close();
}
