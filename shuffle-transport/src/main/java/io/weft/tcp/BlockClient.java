package io.weft.tcp;

import io.weft.peer.PeerAddress;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.client.TransportClientFactory;

/**
 * Connections to the block servers of peers. Connecting and authenticating block, so they run on
 * threads named {@code weft-connect-<n>}. A reader that waits for a connection can therefore time
 * out. Thread-safe.
 */
public final class BlockClient implements PeerConnections, AutoCloseable {
  private final TransportClientFactory factory;
  private final ExecutorService connectors =
      Executors.newCachedThreadPool(new NumberedThreads("weft-connect-"));
  private final int connectionsPerPeer;
  private final AtomicInteger nextSlot = new AtomicInteger();
  private final ConcurrentHashMap<Slot, CompletableFuture<PeerConnection>> connections =
      new ConcurrentHashMap<>();
  private volatile boolean closed;

  /** One of the connections that Spark's settings allow between two executors. */
  private record Slot(PeerAddress peer, int number) {}

  /** Creates a client of a transport. */
  public BlockClient(SparkTransport transport) {
    this.factory = transport.createClientFactory();
    this.connectionsPerPeer = transport.conf().numConnectionsPerPeer();
  }

  @Override
  public CompletableFuture<PeerConnection> connect(PeerAddress peer) {
    Slot slot = new Slot(peer, Math.floorMod(nextSlot.getAndIncrement(), connectionsPerPeer));
    return connect(slot);
  }

  private CompletableFuture<PeerConnection> connect(Slot slot) {
    CompletableFuture<PeerConnection> known = connections.get(slot);
    if (known != null && isUsable(known)) {
      return known;
    }
    CompletableFuture<PeerConnection> fresh = new CompletableFuture<>();
    boolean mine =
        known == null
            ? connections.putIfAbsent(slot, fresh) == null
            : connections.replace(slot, known, fresh);
    if (!mine) {
      return connect(slot);
    }
    startConnecting(slot.peer(), fresh);
    return fresh;
  }

  private static boolean isUsable(CompletableFuture<PeerConnection> connection) {
    return !connection.isDone()
        || (!connection.isCompletedExceptionally() && connection.join().isActive());
  }

  private void startConnecting(PeerAddress peer, CompletableFuture<PeerConnection> connection) {
    try {
      connectors.execute(() -> connectNow(peer, connection));
    } catch (RejectedExecutionException e) {
      connection.completeExceptionally(new IOException("the exchange is closed", e));
    }
  }

  private void connectNow(PeerAddress peer, CompletableFuture<PeerConnection> connection) {
    try {
      PeerConnection made =
          new SparkConnection(factory.createClient(peer.host(), peer.port(), false));
      connection.complete(made);
      if (closed) {
        made.abort();
      }
    } catch (InterruptedException e) {
      connection.completeExceptionally(new IOException("the exchange is closed", e));
    } catch (IOException | RuntimeException e) {
      connection.completeExceptionally(
          new IOException("connecting to " + peer + " failed: " + e.getMessage(), e));
    }
  }

  /** Closes all connections. Outstanding requests fail. */
  @Override
  public void close() {
    closed = true;
    connectors.shutdownNow();
    factory.close();
  }
}
