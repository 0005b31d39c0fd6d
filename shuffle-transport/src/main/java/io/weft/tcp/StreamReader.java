package io.weft.tcp;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * Walks over the bytes of a stream, in pieces worth a system call: a large chunk is handed out as a
 * view of the segment it lies in, small ones are gathered into one buffer. For one thread.
 *
 * <p>Sending from the mapping beats sending from the file: the kernel copies once either way on the
 * way to a socket on this host, and where it does not it takes pages one by one, at half the speed
 * measured. It also means that nothing refers to the memory once it was sent, so that it can be
 * reused at once.
 */
final class StreamReader {
  /** What one system call should carry: below this its fixed cost shows, above nothing is won. */
  private static final int PIECE_BYTES = 1 << 20;

  /** Copying less than this costs less than another system call. */
  private static final int GATHERED_BYTES = 64 << 10;

  private final ServedStream stream;
  private final List<ServedStream.Piece> pieces;
  private final ByteBuffer gathered;
  private int at;

  /**
   * Starts at the beginning.
   *
   * @param gathered room to gather small chunks in, at least 64 KiB
   */
  StreamReader(ServedStream stream, ByteBuffer gathered) {
    this.stream = stream;
    this.pieces = stream.pieces();
    this.gathered = gathered;
  }

  /**
   * The bytes from a position on: at least one, as many as are worth sending at once.
   *
   * @param position in the stream, below its end; a later one than in the call before
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
