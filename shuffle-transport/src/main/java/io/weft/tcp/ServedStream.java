package io.weft.tcp;

import io.netty.channel.Channel;
import io.weft.catalog.OwnedBlocks;
import io.weft.catalog.OwnedOutput;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The chunks of one answer on their way to a peer. Holds their shuffles, packed copies and a part
 * of the budget until {@link #close()}. Thread-safe once filled.
 */
final class ServedStream implements AutoCloseable {
  private final Channel channel;
  private final Collection<OwnedBlocks> holds;
  private final Packing packing;
  private final List<Piece> pieces = new ArrayList<>();
  private final AtomicBoolean open = new AtomicBoolean(true);
  private Runnable onClose = () -> {};
  private long bytes;
  private volatile long lastProgress = System.nanoTime();

  /**
   * One chunk and where it starts in the stream.
   *
   * @param packed null if the chunk is sent as it is
   */
  record Piece(OwnedOutput output, int chunk, Packing.Packed packed, long start, long length) {}

  /**
   * Closes the holds, also those added later, when it is closed itself; for the peer at the other
   * end of a channel only.
   */
  ServedStream(Channel channel, Collection<OwnedBlocks> holds, Packing packing) {
    this.channel = channel;
    this.holds = holds;
    this.packing = packing;
  }

  /** Adds a chunk, packed if that is not null, and takes what is packed over. */
  void add(OwnedOutput output, int chunk, Packing.Packed packed) {
    long length = packed == null ? output.index().storedBytes(chunk) : packed.bytes();
    pieces.add(new Piece(output, chunk, packed, bytes, length));
    bytes += length;
  }

  /** Says what is to happen when it is closed, besides letting the memory go. */
  void onClose(Runnable action) {
    onClose = action;
  }

  Channel channel() {
    return channel;
  }

  List<Piece> pieces() {
    return pieces;
  }

  /** The bytes of a piece, as they are sent. */
  ByteBuffer view(Piece piece) {
    return piece.packed() == null
        ? piece.output().view(piece.chunk())
        : packing.view(piece.packed());
  }

  long bytes() {
    return bytes;
  }

  /** Some of it was sent. */
  void progressed() {
    lastProgress = System.nanoTime();
  }

  /** When some of it was sent last, or it was opened, as {@link System#nanoTime()} has it. */
  long lastProgress() {
    return lastProgress;
  }

  /** Lets the memory go; nothing of it may be sent any more. Can be repeated. */
  @Override
  public void close() {
    if (open.getAndSet(false)) {
      holds.forEach(OwnedBlocks::close);
      for (Piece piece : pieces) {
        if (piece.packed() != null) {
          packing.free(piece.packed());
        }
      }
      onClose.run();
    }
  }
}
