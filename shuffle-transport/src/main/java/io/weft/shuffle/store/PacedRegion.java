package io.weft.shuffle.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import org.apache.spark.network.util.AbstractFileRegion;

/**
 * A stream that Netty writes to a socket without copying it to its own buffers. It writes a limited
 * number of bytes per call, so that the other connections of the event loop make progress too. For
 * one event loop.
 */
public abstract class PacedRegion extends AbstractFileRegion {
  /** A call ends after about this many bytes. */
  static final long TURN_BYTES = 1 << 20;

  private final long count;
  private long transferred;

  /**
   * Creates a stream of which no byte has been written.
   *
   * @param count its bytes
   */
  protected PacedRegion(long count) {
    this.count = count;
  }

  /**
   * Returns bytes from a position on, at least one. Bytes that the target does not accept are
   * requested again.
   *
   * @param position in the stream, below its end; never below the position of the previous call
   */
  protected abstract ByteBuffer from(long position);

  /** Called after each call that wrote bytes. Does nothing by default. */
  protected void progressed() {
    // Nothing to track.
  }

  @Override
  public final long position() {
    return 0;
  }

  @Override
  public final long transferred() {
    return transferred;
  }

  @Override
  public final long count() {
    return count;
  }

  @Override
  public final long transferTo(WritableByteChannel target, long position) throws IOException {
    if (position != transferred) {
      throw new IllegalArgumentException(
          "position " + position + " of a stream that has written " + transferred + " bytes");
    }
    long end = Math.min(count, position + TURN_BYTES);
    boolean taken = true;
    while (taken && transferred < end) {
      ByteBuffer piece = from(transferred);
      transferred += target.write(piece);
      taken = !piece.hasRemaining();
    }
    long written = transferred - position;
    if (written > 0) {
      progressed();
    }
    return written;
  }
}
