package io.weft.tcp;

import io.weft.peer.PeerAddress;
import java.util.concurrent.CompletableFuture;

/** Where readers get their connections to peers from. Thread-safe. */
@FunctionalInterface
public interface PeerConnections {
  /**
   * The connection to a peer, made if there is none that works. Does not block.
   *
   * @return completes exceptionally with an {@link java.io.IOException} if the peer cannot be
   *     reached or does not know the application's secret
   */
  CompletableFuture<PeerConnection> connect(PeerAddress peer);
}
