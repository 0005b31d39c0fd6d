package io.weft.collectives.bootstrap;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.zip.CRC32C;

/**
 * Messages of known length over a non-blocking socket. Corruption is an error. A corrupt length is
 * detected at once, so no reader waits for bytes that were never sent.
 *
 * <pre>
 *   0 int bytes | 4 int CRC32C of the bytes | 8 int CRC32C of the 8 bytes before | 12 bytes
 * </pre>
 *
 * <p>Any thread may call {@link #send}; all other methods are for one thread. Owns the socket.
 */
public final class FrameChannel implements AutoCloseable {
  private static final int HEADER_BYTES = 12;
  private static final int SUMMED_BYTES = 8;

  private final SocketChannel channel;
  private final int maxBytes;
  private final Queue<ByteBuffer> out = new ConcurrentLinkedQueue<>();
  private final ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES);
  private byte[] message;
  private ByteBuffer body;

  /**
   * Sends and receives messages over a socket.
   *
   * @param channel connected; made non-blocking
   * @param maxBytes the longest message that is accepted
   */
  public FrameChannel(SocketChannel channel, int maxBytes) throws IOException {
    this.channel = channel;
    this.maxBytes = maxBytes;
    channel.configureBlocking(false);
  }

  public SocketChannel channel() {
    return channel;
  }

  /** Queues a message; {@link #flush} sends it. */
  public void send(byte[] content) {
    ByteBuffer message = ByteBuffer.allocate(HEADER_BYTES + content.length);
    message.putInt(content.length).putInt(sum(content, content.length));
    message.putInt(sum(message.array(), SUMMED_BYTES)).put(content);
    out.add(message.flip());
  }

  private static int sum(byte[] bytes, int length) {
    CRC32C sum = new CRC32C();
    sum.update(bytes, 0, length);
    return (int) sum.getValue();
  }

  /** Writes as much as the socket accepts; returns whether the queue is empty. */
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
   * The next message that has arrived completely, if any.
   *
   * @throws EOFException when the other side has closed the connection
   * @throws IOException also when a message is too long or was corrupted on its way; the channel is
   *     unusable then
   */
  public Optional<byte[]> poll() throws IOException {
    if (body == null) {
      if (!fill(header)) {
        return Optional.empty();
      }
      requireSum("a message's header", header.array(), SUMMED_BYTES, header.getInt(SUMMED_BYTES));
      int length = header.getInt(0);
      if (length < 0 || length > maxBytes) {
        throw new IOException(
            "a message of " + length + " bytes where at most " + maxBytes + " are allowed");
      }
      message = new byte[length];
      body = ByteBuffer.wrap(message);
    }
    if (!fill(body)) {
      return Optional.empty();
    }
    requireSum(
        "a message of " + message.length + " bytes", message, message.length, header.getInt(4));
    body = null;
    header.clear();
    return Optional.of(message);
  }

  private static void requireSum(String what, byte[] bytes, int length, int promised)
      throws IOException {
    int found = sum(bytes, length);
    if (found != promised) {
      throw new IOException(
          "%s was damaged on its way: it has CRC32C %08x, expected %08x"
              .formatted(what, found, promised));
    }
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
