package io.weft.spark.rapids.control;

import io.netty.channel.ChannelFuture;
import org.apache.spark.network.client.TransportClient;

/** One connection. Thread-safe. */
public final class ControlChannel {
  private final TransportClient client;

  ControlChannel(TransportClient client) {
    this.client = client;
  }

  /**
   * Sends a message behind those before; does not wait. What is lost with the connection is not
   * reported here, but by its end.
   */
  public void send(ControlMessage message) {
    client.send(message.encode());
  }

  /** Ends the connection; the listeners of both ends hear of it. */
  public void close() {
    ChannelFuture unused = client.getChannel().close();
  }

  /** Whether it has not ended; its end is reported a little later. */
  public boolean isActive() {
    return client.isActive();
  }

  /** The address of the other end. */
  @Override
  public String toString() {
    return String.valueOf(client.getSocketAddress());
  }
}
