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
 * gets them out of one buffer, which stays in the processor's cache; or, if the number is negative,
 * out of memory much larger than that. Serves one connection after the other, on a thread of its
 * own until it is closed.
 */
final class PlainServer implements AutoCloseable {
  /** What is written and read at once, the best of a few sizes. */
  static final int BUFFER_BYTES = 1 << 20;

  /** As much as the blocks take up that they are compared with. */
  static final int MEMORY_BYTES = 256 << 20;

  private final ServerSocketChannel listening;
  private ByteBuffer memory;

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
    ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);
    while (listening.isOpen()) {
      try (SocketChannel client = listening.accept()) {
        client.setOption(StandardSocketOptions.TCP_NODELAY, true);
        serve(client, buffer);
      } catch (IOException e) {
        // The client is gone, or the server closed: then the loop ends.
      }
    }
  }

  private void serve(SocketChannel client, ByteBuffer buffer) throws IOException {
    ByteBuffer request = ByteBuffer.allocateDirect(Long.BYTES);
    while (client.read(request) >= 0) {
      if (!request.hasRemaining()) {
        long bytes = Math.abs(request.getLong(0));
        ByteBuffer content = request.getLong(0) < 0 ? memory() : buffer;
        request.clear();
        for (long done = 0; done < bytes; ) {
          done += client.write(piece(content, done, bytes));
        }
      }
    }
  }

  /** Made when it is asked for first, and kept. */
  private ByteBuffer memory() {
    if (memory == null) {
      memory = ByteBuffer.allocateDirect(MEMORY_BYTES);
    }
    return memory;
  }

  /** What comes next of the content, which is gone through again and again. */
  static ByteBuffer piece(ByteBuffer content, long done, long bytes) {
    int at = (int) (done % content.capacity());
    long length = Math.min(Math.min(BUFFER_BYTES, bytes - done), content.capacity() - at);
    return content.limit((int) (at + length)).position(at);
  }

  @Override
  public void close() throws IOException {
    listening.close();
  }
}
