package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.ShuffleReceivedBufferCatalog;
import java.util.concurrent.Executor;

/** Fetches tables of one peer. */
public class RapidsShuffleClient implements AutoCloseable {
  public RapidsShuffleClient(
      ClientConnection connection,
      RapidsShuffleTransport transport,
      Executor executor,
      Executor copies,
      ShuffleReceivedBufferCatalog catalog) {
    throw new UnsupportedOperationException("a stub");
  }

  public static ShuffleReceivedBufferCatalog $lessinit$greater$default$5() {
    throw new UnsupportedOperationException("a stub");
  }

  public ClientConnection connection() {
    throw new UnsupportedOperationException("a stub");
  }

  public void issueBufferReceives(BufferReceiveState state) {
    throw new UnsupportedOperationException("a stub");
  }

  public void handleBufferReceive(Transaction transaction, BufferReceiveState state) {
    throw new UnsupportedOperationException("a stub");
  }

  @Override
  public void close() {
    throw new UnsupportedOperationException("a stub");
  }
}
