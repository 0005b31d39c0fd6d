package io.weft.collectives.host;

import io.weft.collectives.host.MessageChannel.ByteLink;
import io.weft.memory.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * A link through its own TCP connection. Long runs of bytes move between the socket and user memory
 * without a copy; short ones are gathered, so that a message costs one system call.
 *
 * <p>A broken connection is not an error here: no bytes move any more, and the waiting code asks
 * for the reason.
 */
final class SocketLink implements ByteLink, AutoCloseable {
  /** The limit up to which a copy costs less than a system call. */
  private static final int SHORT_BYTES = 16 << 10;

  private static final int STAGE_BYTES = 64 << 10;

  /** The limit of bytes in one system call, so that other links get their turn. */
  private static final int CALL_BYTES = 1 << 20;

  private final SocketChannel channel;
  private final ByteBuffer view = ByteBuffer.allocateDirect(0);
  private final ByteBuffer[] gathered = new ByteBuffer[2];

  /** Appended but not written; in writing mode, from 0 to the position. */
  private ByteBuffer out;

  /** Read but not taken, from the position to the limit. */
  private ByteBuffer in;

  private String broken = "";
  private long brokenNanos;

  /**
   * Opens a link over a socket, which the link closes.
   *
   * @param channel connected and not blocking
   */
  SocketLink(SocketChannel channel) {
    this.channel = channel;
  }

  @Override
  public int put(long address, long bytes) {
    if (isBroken()) {
      return 0;
    }
    if (out == null) {
      out = ByteBuffer.allocateDirect(STAGE_BYTES);
    }
    if (bytes <= SHORT_BYTES && bytes <= out.remaining()) {
      Memory.copy(address, Memory.addressOf(out) + out.position(), bytes);
      out.position(out.position() + (int) bytes);
      return (int) bytes;
    }
    try {
      return write(address, (int) Math.min(bytes, CALL_BYTES));
    } catch (IOException e) {
      breakOff(e);
      return 0;
    }
  }

  /** Writes the gathered bytes, and after them as many of these bytes as the socket accepts. */
  private int write(long address, int bytes) throws IOException {
    Memory.aim(view, address, bytes);
    if (out.position() == 0) {
      return channel.write(view);
    }
    out.flip();
    gathered[0] = out;
    gathered[1] = view;
    try {
      long unused = channel.write(gathered);
    } finally {
      out.compact();
    }
    return view.position();
  }

  @Override
  public boolean push() {
    if (isBroken()) {
      return false;
    }
    if (out == null || out.position() == 0) {
      return true;
    }
    out.flip();
    try {
      int unused = channel.write(out);
    } catch (IOException e) {
      breakOff(e);
    } finally {
      out.compact();
    }
    return out.position() == 0 && !isBroken();
  }

  @Override
  public int take(long address, long bytes) {
    if (in == null) {
      in = ByteBuffer.allocateDirect(STAGE_BYTES).limit(0);
    }
    if (!in.hasRemaining()) {
      if (isBroken()) {
        return 0;
      }
      if (bytes > SHORT_BYTES) {
        Memory.aim(view, address, (int) Math.min(bytes, CALL_BYTES));
        return read(view);
      }
      int read = read(in.clear());
      in.position(0).limit(read);
    }
    int length = (int) Math.min(bytes, in.remaining());
    Memory.copy(Memory.addressOf(in) + in.position(), address, length);
    in.position(in.position() + length);
    return length;
  }

  @Override
  public boolean leavesHost() {
    return true;
  }

  private int read(ByteBuffer target) {
    try {
      int read = channel.read(target);
      if (read >= 0) {
        return read;
      }
      breakOff(new IOException("the other side closed it"));
    } catch (IOException e) {
      breakOff(e);
    }
    return 0;
  }

  private void breakOff(IOException cause) {
    if (!isBroken()) {
      broken = String.valueOf(cause.getMessage() == null ? cause : cause.getMessage());
      brokenNanos = System.nanoTime();
    }
  }

  /** Whether all arrived bytes have been taken and no more will come or go. */
  boolean isBroken() {
    return !broken.isEmpty();
  }

  /** Why it is broken. */
  String reason() {
    return broken;
  }

  /** How long it has been broken. */
  long brokenForNanos() {
    return System.nanoTime() - brokenNanos;
  }

  /**
   * Closes the socket. Pushed bytes still reach the peer: closing a socket with unread bytes would
   * discard bytes on their way, so this reads them first.
   */
  @Override
  public void close() throws IOException {
    try {
      if (!isBroken()) {
        channel.shutdownOutput();
        ByteBuffer rest = ByteBuffer.allocate(STAGE_BYTES);
        while (channel.read(rest) > 0) {
          rest.clear();
        }
      }
    } catch (IOException e) {
      breakOff(e);
    } finally {
      channel.close();
    }
  }
}
