package io.weft.spark.rapids;

import io.weft.spark.rapids.control.ControlChannel;
import io.weft.spark.rapids.control.ControlListener;
import io.weft.spark.rapids.control.ControlMessage;
import io.weft.spark.rapids.control.Hello;
import java.util.HashMap;
import java.util.Map;

/** Forwards the events of connections to the event thread, in order. */
final class Dispatch implements ControlListener {
  private final EventThread events;

  /** The connections that others opened. Used by the event thread. */
  private final Map<ControlChannel, ServerLink> served = new HashMap<>();

  private volatile ServerSide server;
  private volatile ClientSide client;

  Dispatch(EventThread events) {
    this.events = events;
  }

  /** Sets both sides. Called before the first connection. */
  void connect(ServerSide serverSide, ClientSide clientSide) {
    server = serverSide;
    client = clientSide;
  }

  @Override
  public void greeted(ControlChannel channel, Hello hello) {
    boolean open =
        events.execute(() -> served.put(channel, server.open(hello.executor(), channel)));
    if (!open) {
      throw new IllegalArgumentException("its shuffle transport was closed");
    }
  }

  @Override
  public void heard(ControlChannel channel, ControlMessage message) {
    boolean unused = events.execute(() -> hear(link(channel), message));
  }

  private static void hear(Link link, ControlMessage message) {
    if (link == null) {
      return;
    }
    try {
      link.hear(message);
    } catch (IllegalArgumentException e) {
      link.end("a message of executor %d is invalid: %s".formatted(link.peer(), e.getMessage()));
    }
  }

  private Link link(ControlChannel channel) {
    ServerLink link = served.get(channel);
    return link != null ? link : client.of(channel);
  }

  @Override
  public void ended(ControlChannel channel) {
    boolean unused =
        events.execute(
            () -> {
              Link link = link(channel);
              served.remove(channel);
              if (link != null) {
                link.end(
                    "the connection of executors %d and %d ended"
                        .formatted(link.own(), link.peer()));
              }
            });
  }
}
