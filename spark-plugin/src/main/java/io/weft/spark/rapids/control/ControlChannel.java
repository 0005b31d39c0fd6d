package io.weft.spark.rapids.control;

import io.netty.channel.ChannelFuture;
import org.apache.spark.network.client.TransportClient;

/** A connection for control messages. Thread-safe. */
public final class ControlChannel {
  private final TransportClient client;

  ControlChannel(TransportClient client) {
    this.client = client;
  }

  /**
   * Sends a message, in order. Does not wait. The loss of a message is reported by the end of the
   * connection.
   */
  public void send(ControlMessage message) {
    client.send(message.encode());
  }

  /** Ends the connection. The listeners of both ends are notified. */
  public void close() {
    ChannelFuture unused = client.getChannel().close();
  }

  /** Whether the connection is open. Its end is reported a little later. */
  public boolean isActive() {
    return client.isActive();
  }

  /** The address of the other end. */
  @Override
  public String toString() {
    return String.valueOf(client.getSocketAddress());
  }
}
