package com.nvidia.spark.rapids.shuffle;

import ai.rapids.cudf.MemoryBuffer;
import java.nio.ByteBuffer;
import scala.Enumeration;

/** A server's way to all clients. */
public interface ServerConnection {
  int startManagementPort(String host);

  void registerRequestHandler(Enumeration.Value messageType, TransactionCallback callback);

  Transaction send(
      long peerExecutorId,
      Enumeration.Value messageType,
      long header,
      ByteBuffer response,
      TransactionCallback callback);

  Transaction send(
      long peerExecutorId,
      Enumeration.Value messageType,
      long header,
      MemoryBuffer buffer,
      TransactionCallback callback);
}
