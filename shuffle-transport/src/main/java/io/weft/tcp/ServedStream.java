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
 * The chunks of one answer that is being sent to a peer. Holds their shuffles, compressed copies
 * and a part of the budget until {@link #close()}. Thread-safe once filled.
 */
final class ServedStream implements AutoCloseable {
  private final Channel channel;
  private final Collection<OwnedBlocks> holds;
  private final Packing compressor;
  private final List<Piece> pieces = new ArrayList<>();
  private final AtomicBoolean open = new AtomicBoolean(true);
  private Runnable onClose = () -> {};
  private long bytes;
  private volatile long lastProgress = System.nanoTime();

  /**
   * One chunk and where it starts in the stream.
   *
   * @param compressed null if the chunk is sent uncompressed
   */
  record Piece(
      OwnedOutput output, int chunk, Packing.Compressed compressed, long start, long length) {}

  /**
   * Creates a stream for the peer at the other end of a channel.
   *
   * @param holds closed with the stream; may grow until then
   */
  ServedStream(Channel channel, Collection<OwnedBlocks> holds, Packing compressor) {
    this.channel = channel;
    this.holds = holds;
    this.compressor = compressor;
  }

  /** Adds a chunk. Takes ownership of its compressed copy, which may be null. */
  void add(OwnedOutput output, int chunk, Packing.Compressed compressed) {
    long length = compressed == null ? output.index().storedBytes(chunk) : compressed.bytes();
    pieces.add(new Piece(output, chunk, compressed, bytes, length));
    bytes += length;
  }

  /** Sets an action that runs when the stream is closed, after the memory is released. */
  void onClose(Runnable action) {
    onClose = action;
  }

  Channel channel() {
    return channel;
  }

  List<Piece> pieces() {
    return pieces;
  }

  /** The bytes of a piece in the form in which they are sent. */
  ByteBuffer view(Piece piece) {
    return piece.compressed() == null
        ? piece.output().view(piece.chunk())
        : compressor.view(piece.compressed());
  }

  long bytes() {
    return bytes;
  }

  /** Records that bytes were sent. */
  void progressed() {
    lastProgress = System.nanoTime();
  }

  /** The time when bytes were last sent, or the stream was opened, by {@link System#nanoTime()}. */
  long lastProgress() {
    return lastProgress;
  }

  /** Releases the memory. No byte may be sent afterwards. Can be repeated. */
  @Override
  public void close() {
    if (open.getAndSet(false)) {
      holds.forEach(OwnedBlocks::close);
      for (Piece piece : pieces) {
        if (piece.compressed() != null) {
          compressor.free(piece.compressed());
        }
      }
      onClose.run();
    }
  }
}
