package io.weft.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import org.apache.spark.network.util.AbstractFileRegion;

/**
 * A stream that Netty writes out without taking it into buffers of its own. It goes in turns, so
 * that the other connections of the event loop get theirs. For one event loop.
 */
public abstract class PacedRegion extends AbstractFileRegion {
  /** After so many bytes, or few more, others get their turn. */
  static final long TURN_BYTES = 1 << 20;

  private final long count;
  private long transferred;

  /**
   * A stream of which nothing has been written.
   *
   * @param count all its bytes
   */
  protected PacedRegion(long count) {
    this.count = count;
  }

  /**
   * Bytes from a position on, at least one; what the target does not take is asked for again.
   *
   * @param position in the stream, below its end; never below that of the call before
   */
  protected abstract ByteBuffer from(long position);

  /** Called after each turn in which bytes went out. */
  protected void progressed() {
    // Most streams need not know.
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
          "position " + position + " of a stream of which " + transferred + " bytes are gone");
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
