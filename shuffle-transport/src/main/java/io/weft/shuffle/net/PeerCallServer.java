package io.weft.shuffle.net;

import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.network.client.RpcResponseCallback;

/** Answers requests of peers that are not for blocks. Thread-safe. */
public final class PeerCallServer {
  private volatile Service service =
      request ->
          CompletableFuture.failedFuture(new IllegalStateException("this executor has no service"));

  /** Answers the requests of peers. */
  @FunctionalInterface
  public interface Service {
    /**
     * Answers a request. Does not block.
     *
     * @param request must not be changed
     * @return the answer; the peer gets the message of a failure
     */
    CompletableFuture<byte[]> answer(byte[] request);
  }

  /** Sets the service that answers from now on. */
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
