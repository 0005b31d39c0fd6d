package io.weft.tcp;

import io.weft.wire.ServiceMessage;
import io.weft.wire.WireException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.network.client.RpcResponseCallback;

/** Answers what peers ask for that is no block. Thread-safe. */
public final class PeerServices {
  private volatile Service service =
      question ->
          CompletableFuture.failedFuture(
              new IllegalStateException("this executor has no service for it"));

  /** Who answers. */
  @FunctionalInterface
  public interface Service {
    /**
     * Takes a question; does not block.
     *
     * @param question not to be changed
     * @return the answer; a failure reaches the peer by its message
     */
    CompletableFuture<byte[]> answer(byte[] question);
  }

  /** From now on this answers. */
  public void serve(Service answering) {
    service = answering;
  }

  void answer(ByteBuffer message, RpcResponseCallback callback) {
    try {
      CompletableFuture<byte[]> unused =
          service
              .answer(ServiceMessage.decode(message).bytes())
              .whenComplete(
                  (answer, failure) -> {
                    if (failure == null) {
                      callback.onSuccess(new ServiceMessage(answer).encode());
                    } else {
                      callback.onFailure(failure);
                    }
                  });
    } catch (WireException | RuntimeException e) {
      callback.onFailure(e);
    }
  }
}
