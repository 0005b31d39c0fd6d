package io.weft.examples.bench.transfer;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import org.HdrHistogram.Histogram;

/**
 * A server that shows the speed of plain Java sockets. A client sends a number of bytes, as a long,
 * and gets that many bytes from one buffer, which stays in the processor's cache. For a negative
 * number the bytes come from memory much larger than the cache. Serves one connection at a time, on
 * one thread, until it is closed.
 */
final class PlainSockets implements AutoCloseable {
  /** The bytes of one read or write; this size is the fastest of several. */
  static final int BUFFER_BYTES = 1 << 20;

  /** The size of the blocks that the sockets are compared with. */
  static final int MEMORY_BYTES = 256 << 20;

  private final ServerSocketChannel listening;
  private ByteBuffer memory;

  private PlainSockets(ServerSocketChannel listening) {
    this.listening = listening;
  }

  /** Starts a server at an address of this host. */
  static PlainSockets start(String address) throws IOException {
    ServerSocketChannel listening = ServerSocketChannel.open();
    listening.bind(new InetSocketAddress(address, 0));
    PlainSockets server = new PlainSockets(listening);
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
        // The client disconnected, or the server was closed and the loop ends.
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

  /** Allocates the memory on first use and keeps it. */
  private ByteBuffer memory() {
    if (memory == null) {
      memory = ByteBuffer.allocateDirect(MEMORY_BYTES);
    }
    return memory;
  }

  /** Returns the next piece of the content, which repeats. */
  static ByteBuffer piece(ByteBuffer content, long done, long bytes) {
    int at = (int) (done % content.capacity());
    long length = Math.min(Math.min(BUFFER_BYTES, bytes - done), content.capacity() - at);
    return content.limit((int) (at + length)).position(at);
  }

  @Override
  public void close() throws IOException {
    listening.close();
  }

  /** A client of {@link PlainSockets} over one connection. For one thread. */
  static final class Client implements AutoCloseable {
    private final SocketChannel channel;
    private final ByteBuffer request = ByteBuffer.allocateDirect(Long.BYTES);
    private final ByteBuffer content;

    /**
     * Connects.
     *
     * @param server its address and port
     * @param content receives the bytes; if it is larger than {@link PlainSockets#BUFFER_BYTES},
     *     the server sends from its large memory too
     */
    Client(InetSocketAddress server, ByteBuffer content) throws IOException {
      this.content = content;
      channel = SocketChannel.open(server);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    }

    /** Requests and reads a number of bytes; returns nanoseconds. */
    long read(long bytes) throws IOException {
      long start = System.nanoTime();
      boolean large = content.capacity() > PlainSockets.BUFFER_BYTES;
      request.putLong(0, large ? -bytes : bytes).clear();
      while (request.hasRemaining()) {
        channel.write(request);
      }
      for (long done = 0; done < bytes; ) {
        int read = channel.read(PlainSockets.piece(content, done, bytes));
        if (read < 0) {
          throw new EOFException("the server closed the connection");
        }
        done += read;
      }
      return System.nanoTime() - start;
    }

    void readAgain(long bytes, int times, Histogram histogram) throws IOException {
      for (int i = 0; i < times; i++) {
        Histograms.record(histogram, read(bytes));
      }
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }
}
