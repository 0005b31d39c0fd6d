package com.nvidia.spark.rapids.shuffle;

import org.apache.spark.storage.BlockManagerId;
import scala.collection.immutable.Seq;

/** Moves tables between executors. */
public interface RapidsShuffleTransport extends AutoCloseable {
  RapidsShuffleClient makeClient(BlockManagerId peer);

  ClientConnection connect(BlockManagerId peer);

  RapidsShuffleServer makeServer(RapidsShuffleRequestHandler handler);

  RefCountedDirectByteBuffer getDirectByteBuffer(long size);

  void queuePending(Seq<PendingTransferRequest> requests);

  void cancelPending(RapidsShuffleFetchHandler handler);

  void doneBytesInFlight(long bytes);

  Seq<BounceBuffer> tryGetReceiveBounceBuffers(long remaining, int most);

  Seq<SendBounceBuffers> tryGetSendBounceBuffers(long remaining, int most);

  @Override
  void close();
}
