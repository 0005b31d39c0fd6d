package com.nvidia.spark.rapids.shuffle;

import java.nio.ByteBuffer;
import scala.Enumeration;
import scala.Option;

/** One request, send or receive. */
public interface Transaction extends AutoCloseable {
  long peerExecutorId();

  long getHeader();

  Enumeration.Value getStatus();

  Option<String> getErrorMessage();

  TransactionStats getStats();

  void waitForCompletion();

  MetadataTransportBuffer releaseMessage();

  Transaction respond(ByteBuffer response, TransactionCallback callback);

  @Override
  void close();
}
