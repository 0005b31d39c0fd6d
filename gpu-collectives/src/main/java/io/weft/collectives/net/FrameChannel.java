package io.weft.collectives.net;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Messages of known length over a socket that does not block: an int, the number of bytes, and the
 * bytes.
 *
 * <p>Any thread may {@link #send}; all else is for one thread. Owns the socket.
 */
public final class FrameChannel implements AutoCloseable {
  private final SocketChannel channel;
  private final int mostBytes;
  private final Queue<ByteBuffer> out = new ConcurrentLinkedQueue<>();
  private final ByteBuffer header = ByteBuffer.allocate(4);
  private byte[] message;
  private ByteBuffer body;

  /**
   * Messages over a socket.
   *
   * @param channel connected; made non-blocking
   * @param mostBytes the longest message that is taken
   */
  public FrameChannel(SocketChannel channel, int mostBytes) throws IOException {
    this.channel = channel;
    this.mostBytes = mostBytes;
    channel.configureBlocking(false);
  }

  public SocketChannel channel() {
    return channel;
  }

  /** Queues a message; it leaves with {@link #flush}. */
  public void send(byte[] content) {
    out.add(ByteBuffer.allocate(4 + content.length).putInt(content.length).put(content).flip());
  }

  /** Writes what the socket takes; returns whether nothing is left. */
  public boolean flush() throws IOException {
    for (ByteBuffer next = out.peek(); next != null; next = out.peek()) {
      channel.write(next);
      if (next.hasRemaining()) {
        return false;
      }
      out.remove();
    }
    return true;
  }

  /**
   * The next message that has come whole, if any.
   *
   * @throws EOFException when the other side has closed the connection
   */
  public Optional<byte[]> poll() throws IOException {
    if (body == null) {
      if (!fill(header)) {
        return Optional.empty();
      }
      int length = header.getInt(0);
      if (length < 0 || length > mostBytes) {
        throw new IOException(
            "a message of " + length + " bytes where at most " + mostBytes + " are allowed");
      }
      message = new byte[length];
      body = ByteBuffer.wrap(message);
    }
    if (!fill(body)) {
      return Optional.empty();
    }
    body = null;
    header.clear();
    return Optional.of(message);
  }

  private boolean fill(ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining()) {
      int read = channel.read(buffer);
      if (read < 0) {
        throw new EOFException("the other side closed the connection");
      }
      if (read == 0) {
        return false;
      }
    }
    return true;
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
