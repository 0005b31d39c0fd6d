package io.weft.tcp;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * Reads the bytes of a stream in pieces that are worth a system call. A large chunk is returned as
 * a view of its segment. Small chunks are gathered in one buffer. For one thread.
 *
 * <p>Sending from the mapping is faster than sending from the file. For a socket on this host the
 * kernel copies once in both cases. Otherwise it takes a file's pages one by one, at half the
 * measured speed. Also, the kernel keeps no reference to memory that was sent, so the memory can be
 * reused at once.
 */
final class StreamReader {
  /** Bytes for one system call. Less shows the call's fixed cost; more brings no gain. */
  private static final int PIECE_BYTES = 1 << 20;

  /** Copying less than this costs less than another system call. */
  private static final int GATHERED_BYTES = 64 << 10;

  private final ServedStream stream;
  private final List<ServedStream.Piece> pieces;
  private final ByteBuffer gathered;
  private int at;

  /**
   * Starts at position 0.
   *
   * @param gathered buffer for small chunks, at least 64 KiB
   */
  StreamReader(ServedStream stream, ByteBuffer gathered) {
    this.stream = stream;
    this.pieces = stream.pieces();
    this.gathered = gathered;
  }

  /**
   * Returns the bytes from a position on: at least one, and as many as are worth one call.
   *
   * @param position in the stream, below its end; beyond the position of the previous call
   */
  ByteBuffer from(long position) {
    while (position >= pieces.get(at).start() + pieces.get(at).length()) {
      at++;
    }
    ServedStream.Piece piece = pieces.get(at);
    long within = position - piece.start();
    if (piece.length() - within >= GATHERED_BYTES) {
      int length = (int) Math.min(PIECE_BYTES, piece.length() - within);
      return stream.view(piece).slice((int) within, length);
    }
    return gather(within);
  }

  private ByteBuffer gather(long within) {
    gathered.clear();
    long skip = within;
    for (int i = at; i < pieces.size(); i++) {
      ServedStream.Piece piece = pieces.get(i);
      long length = piece.length() - skip;
      if (length > gathered.remaining() || length >= GATHERED_BYTES) {
        break;
      }
      gathered.put(stream.view(piece).position((int) skip));
      skip = 0;
    }
    return gathered.flip();
  }
}
