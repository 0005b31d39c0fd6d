package io.weft.examples.bench.transfer;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.HdrHistogram.Histogram;

/** The other end of {@link PlainServer}, over one connection. One thread. */
final class PlainClient implements AutoCloseable {
  private final SocketChannel channel;
  private final ByteBuffer request = ByteBuffer.allocateDirect(Long.BYTES);
  private final ByteBuffer content;

  /**
   * Connects.
   *
   * @param content where to put what comes; more than {@link PlainServer#BUFFER_BYTES} if the
   *     server is to send out of memory of that size as well
   */
  PlainClient(int port, ByteBuffer content) throws IOException {
    this.content = content;
    channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
  }

  /** Asks for so many bytes and takes them; returns nanoseconds. */
  long read(long bytes) throws IOException {
    long start = System.nanoTime();
    boolean large = content.capacity() > PlainServer.BUFFER_BYTES;
    request.putLong(0, large ? -bytes : bytes).clear();
    while (request.hasRemaining()) {
      channel.write(request);
    }
    for (long done = 0; done < bytes; ) {
      int read = channel.read(PlainServer.piece(content, done, bytes));
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
