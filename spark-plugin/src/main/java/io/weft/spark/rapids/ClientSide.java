package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import com.nvidia.spark.rapids.shuffle.RefCountedDirectByteBuffer;
import io.weft.spark.rapids.ControlService.ControlChannel;
import io.weft.spark.rapids.TransportParts.TransportSettings;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;

/** The connections of this executor as a client, one for each server. Thread-safe. */
final class ClientSide {
  private final TransportSettings settings;
  private final LaneSet lanes;
  private final EventThread events;
  private final ControlService service;
  private final Receives receives;
  private final Function<byte[], RefCountedDirectByteBuffer> messages;
  private final Consumer<RapidsShuffleClient> endClient;
  private final AtomicLong headers = new AtomicLong();
  private final Map<Long, CompletableFuture<ClientLink>> links = new ConcurrentHashMap<>();

  /**
   * Creates a client side without connections.
   *
   * @param messages copies a message into host memory that spark-rapids can close
   * @param endClient notifies a client of the end of its connection; does not wait
   */
  ClientSide(
      TransportSettings settings,
      LaneSet lanes,
      EventThread events,
      ControlService service,
      Receives receives,
      Function<byte[], RefCountedDirectByteBuffer> messages,
      Consumer<RapidsShuffleClient> endClient) {
    this.settings = settings;
    this.lanes = lanes;
    this.events = events;
    this.service = service;
    this.receives = receives;
    this.messages = messages;
    this.endClient = endClient;
  }

  TransportSettings settings() {
    return settings;
  }

  LaneSet lanes() {
    return lanes;
  }

  EventThread events() {
    return events;
  }

  Receives receives() {
    return receives;
  }

  RefCountedDirectByteBuffer message(byte[] payload) {
    return messages.apply(payload);
  }

  long nextHeader() {
    return headers.incrementAndGet();
  }

  /**
   * The connection to a server. Opens it if there is none.
   *
   * @throws IOException if the server cannot be reached; the message names both ends
   */
  ClientLink connect(long peer, String host, int port) throws IOException {
    CompletableFuture<ClientLink> mine = new CompletableFuture<>();
    CompletableFuture<ClientLink> first = links.putIfAbsent(peer, mine);
    if (first != null) {
      ClientLink link = await(first, peer);
      if (link.channel().isActive()) {
        return link;
      }
      links.remove(peer, first);
      return connect(peer, host, port);
    }
    try {
      ControlChannel channel = service.connect(peer, host, port, settings.deadline());
      ClientLink link = new ClientLink(this, peer, channel);
      mine.complete(link);
      if (!channel.isActive()) {
        boolean unused = events.execute(() -> link.end("the connection was lost at once"));
      }
      return link;
    } catch (IOException e) {
      links.remove(peer, mine);
      mine.completeExceptionally(e);
      throw e;
    } catch (RuntimeException | Error e) {
      links.remove(peer, mine);
      mine.completeExceptionally(e);
      throw e;
    }
  }

  private ClientLink await(CompletableFuture<ClientLink> first, long peer) throws IOException {
    try {
      return first.get(2 * settings.deadline().toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException e) {
      throw new IOException(e.getCause().getMessage(), e.getCause());
    } catch (TimeoutException e) {
      throw new IOException(
          "executor %d was not connected to executor %d within twice %s"
              .formatted(settings.executor(), peer, settings.deadline()),
          e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while connecting to executor " + peer, e);
    }
  }

  /** On the event thread: the connection of a channel; null if no client uses the channel. */
  ClientLink of(ControlChannel channel) {
    for (ClientLink link : open()) {
      if (link.channel() == channel) {
        return link;
      }
    }
    return null;
  }

  private List<ClientLink> open() {
    List<ClientLink> open = new ArrayList<>();
    for (CompletableFuture<ClientLink> each : links.values()) {
      if (isOpen(each)) {
        open.add(each.join());
      }
    }
    return open;
  }

  private static boolean isOpen(CompletableFuture<ClientLink> link) {
    return link.isDone() && !link.isCompletedExceptionally();
  }

  /** On the event thread: a connection has ended. */
  void ended(ClientLink link, RapidsShuffleClient client) {
    boolean unused = links.values().removeIf(each -> isOpen(each) && each.join() == link);
    if (client != null) {
      endClient.accept(client);
    }
  }

  /** On the event thread: fails what has timed out. */
  void expire() {
    open().forEach(RapidsLink::expire);
  }

  /** On the event thread: ends all connections. */
  void end(String reason) {
    open().forEach(link -> link.end(reason));
  }
}
