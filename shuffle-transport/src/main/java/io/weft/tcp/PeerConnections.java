package io.weft.tcp;

import io.weft.peer.PeerAddress;
import java.util.concurrent.CompletableFuture;

/** The source of connections to peers. Thread-safe. */
@FunctionalInterface
public interface PeerConnections {
  /**
   * Returns a connection to a peer. Connects if there is no active connection. Does not block.
   *
   * @return completes exceptionally with an {@link java.io.IOException} if the peer cannot be
   *     reached or does not know the application's secret
   */
  CompletableFuture<PeerConnection> connect(PeerAddress peer);
}
