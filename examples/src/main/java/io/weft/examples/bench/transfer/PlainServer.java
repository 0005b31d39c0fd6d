package io.weft.examples.bench.transfer;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/**
 * What Java's sockets do by themselves: whoever connects asks for so many bytes, as a long, and
 * gets them out of one buffer. Serves one connection after the other, on a thread of its own until
 * it is closed.
 */
final class PlainServer implements AutoCloseable {
  /** What is written and read at once, the best of a few sizes. */
  static final int BUFFER_BYTES = 1 << 20;

  private final ServerSocketChannel listening;

  private PlainServer(ServerSocketChannel listening) {
    this.listening = listening;
  }

  static PlainServer start() throws IOException {
    ServerSocketChannel listening = ServerSocketChannel.open();
    listening.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    PlainServer server = new PlainServer(listening);
    Thread thread = new Thread(server::serveAll, "weft-bench-plain");
    thread.setDaemon(true);
    thread.start();
    return server;
  }

  int port() throws IOException {
    return ((InetSocketAddress) listening.getLocalAddress()).getPort();
  }

  private void serveAll() {
    ByteBuffer content = ByteBuffer.allocateDirect(BUFFER_BYTES);
    while (listening.isOpen()) {
      try (SocketChannel client = listening.accept()) {
        client.setOption(StandardSocketOptions.TCP_NODELAY, true);
        serve(client, content);
      } catch (IOException e) {
        // The client is gone, or the server closed: then the loop ends.
      }
    }
  }

  private static void serve(SocketChannel client, ByteBuffer content) throws IOException {
    ByteBuffer request = ByteBuffer.allocateDirect(Long.BYTES);
    while (client.read(request) >= 0) {
      if (!request.hasRemaining()) {
        long left = request.getLong(0);
        request.clear();
        while (left > 0) {
          content.clear().limit((int) Math.min(content.capacity(), left));
          left -= client.write(content);
        }
      }
    }
  }

  @Override
  public void close() throws IOException {
    listening.close();
  }
}
