package io.weft.tcp;

import io.netty.channel.Channel;
import io.weft.catalog.OwnedBlocks;
import io.weft.catalog.OwnedOutput;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The chunks of one answer on their way to a peer. Holds their shuffles until {@link #close()}.
 * Thread-safe once filled.
 */
final class ServedStream implements AutoCloseable {
  private final Channel channel;
  private final Collection<OwnedBlocks> holds;
  private final List<Piece> pieces = new ArrayList<>();
  private final AtomicBoolean open = new AtomicBoolean(true);
  private long bytes;

  /** One chunk and where it starts in the stream. */
  record Piece(OwnedOutput output, int chunk, long start, long length) {}

  /**
   * Closes the holds, also those added later, when it is closed itself; for the peer at the other
   * end of a channel only.
   */
  ServedStream(Channel channel, Collection<OwnedBlocks> holds) {
    this.channel = channel;
    this.holds = holds;
  }

  void add(OwnedOutput output, int chunk) {
    long length = output.index().length(chunk);
    pieces.add(new Piece(output, chunk, bytes, length));
    bytes += length;
  }

  Channel channel() {
    return channel;
  }

  List<Piece> pieces() {
    return pieces;
  }

  long bytes() {
    return bytes;
  }

  /** Lets the memory go; nothing of it may be sent any more. Can be repeated. */
  @Override
  public void close() {
    if (open.getAndSet(false)) {
      holds.forEach(OwnedBlocks::close);
    }
  }
}
