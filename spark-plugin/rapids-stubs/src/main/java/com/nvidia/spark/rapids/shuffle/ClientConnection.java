package com.nvidia.spark.rapids.shuffle;

import java.nio.ByteBuffer;
import scala.Enumeration;

/** A client's way to one peer. */
public interface ClientConnection {
  Transaction request(
      Enumeration.Value messageType, ByteBuffer request, TransactionCallback callback);

  void registerReceiveHandler(Enumeration.Value messageType);

  long getPeerExecutorId();
}
