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
  private final ByteBuffer content = ByteBuffer.allocateDirect(PlainServer.BUFFER_BYTES);

  PlainClient(int port) throws IOException {
    channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
  }

  /** Asks for so many bytes and takes them; returns nanoseconds. */
  long read(long bytes) throws IOException {
    long start = System.nanoTime();
    request.putLong(0, bytes).clear();
    while (request.hasRemaining()) {
      channel.write(request);
    }
    long left = bytes;
    while (left > 0) {
      content.clear().limit((int) Math.min(content.capacity(), left));
      int read = channel.read(content);
      if (read < 0) {
        throw new EOFException("the server closed the connection");
      }
      left -= read;
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
