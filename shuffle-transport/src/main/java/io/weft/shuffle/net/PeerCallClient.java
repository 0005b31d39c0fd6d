package io.weft.shuffle.net;

import io.weft.shuffle.net.PeerConnection.PeerConnections;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerAddress.KnownPeers;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.network.client.RpcResponseCallback;

/** Calls services of peers and waits for their answers. Thread-safe. */
public final class PeerCallClient {
  private final KnownPeers peers;
  private final PeerConnections connections;
  private final Duration timeout;

  /**
   * Creates calls over a client's connections.
   *
   * @param timeout of one call
   */
  public PeerCallClient(KnownPeers peers, PeerConnections connections, Duration timeout) {
    this.peers = peers;
    this.connections = connections;
    this.timeout = timeout;
  }

  /**
   * Looks up executors in one request, so that calls need none.
   *
   * @throws IOException if the directory does not answer in time; says nothing about the executors
   */
  public void prepare(Set<String> executorIds) throws IOException {
    Map<String, PeerAddress> unused = peers.find(executorIds);
  }

  /**
   * Calls an executor's service.
   *
   * @throws IOException if the executor is unknown, cannot be reached, fails, or does not answer in
   *     time; the message names it
   * @throws InterruptedException if the thread is interrupted
   */
  public byte[] ask(String executorId, byte[] request) throws IOException, InterruptedException {
    PeerAddress peer = peers.find(executorId);
    CompletableFuture<byte[]> answer = new CompletableFuture<>();
    CompletableFuture<Void> unused =
        connections
            .connect(peer)
            .thenAccept(connection -> connection.call(new ServiceMessage(request), to(answer)))
            .whenComplete(
                (nothing, failure) -> {
                  if (failure != null) {
                    answer.completeExceptionally(failure);
                  }
                });
    try {
      return answer.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      peers.forget(peer);
      throw new IOException(peer + " did not answer: " + e.getCause().getMessage(), e.getCause());
    } catch (TimeoutException e) {
      peers.forget(peer);
      throw new IOException(peer + " did not answer within " + timeout.toSeconds() + " s", e);
    }
  }

  private static RpcResponseCallback to(CompletableFuture<byte[]> answer) {
    return new RpcResponseCallback() {
      @Override
      public void onSuccess(ByteBuffer response) {
        try {
          answer.complete(ServiceMessage.decode(response).bytes());
        } catch (WireException e) {
          answer.completeExceptionally(e);
        }
      }

      @Override
      public void onFailure(Throwable failure) {
        answer.completeExceptionally(failure);
      }
    };
  }
}
