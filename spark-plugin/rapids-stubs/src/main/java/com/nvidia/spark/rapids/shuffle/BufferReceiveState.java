package com.nvidia.spark.rapids.shuffle;

import ai.rapids.cudf.Cuda;
import scala.Function0;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.BoxedUnit;

/** What a client has asked of a peer in one go. */
public class BufferReceiveState implements AutoCloseable {
  public BufferReceiveState(
      long id,
      BounceBuffer bounceBuffer,
      Seq<PendingTransferRequest> requests,
      Function0<BoxedUnit> onClose,
      Cuda.Stream stream) {
    throw new UnsupportedOperationException("a stub");
  }

  public static Cuda.Stream $lessinit$greater$default$5() {
    throw new UnsupportedOperationException("a stub");
  }

  public long id() {
    throw new UnsupportedOperationException("a stub");
  }

  public void getBufferWhenReady(Function1<TransportBuffer, BoxedUnit> ready, long size) {
    throw new UnsupportedOperationException("a stub");
  }

  public void errorOccurred(String message, Throwable cause) {
    throw new UnsupportedOperationException("a stub");
  }

  @Override
  public void close() {
    throw new UnsupportedOperationException("a stub");
  }
}
