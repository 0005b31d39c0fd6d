package io.weft.shuffle.net;

import io.netty.handler.stream.ChunkedStream;
import io.weft.shuffle.net.ServedStreams.ServedStream;
import io.weft.shuffle.store.PacedRegion;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * Adapts a stream to Spark's transport. Reference counting has no effect: the stream is closed when
 * the transport reports that it was sent or that the connection has ended.
 */
final class StreamBuffer extends ManagedBuffer {
  private final ServedStream stream;
  private final int tlsPieceBytes;

  StreamBuffer(ServedStream stream, int tlsPieceBytes) {
    this.stream = stream;
    this.tlsPieceBytes = tlsPieceBytes;
  }

  @Override
  public long size() {
    return stream.bytes();
  }

  @Override
  public ByteBuffer nioByteBuffer() throws IOException {
    return ByteBuffer.wrap(new StreamInput(stream).readAllBytes());
  }

  @Override
  public InputStream createInputStream() {
    return new StreamInput(stream);
  }

  @Override
  public Object convertToNetty() {
    return new StreamRegion(stream);
  }

  @Override
  public Object convertToNettyForSsl() {
    return new ChunkedStream(createInputStream(), tlsPieceBytes);
  }

  @Override
  public ManagedBuffer retain() {
    return this;
  }

  @Override
  public ManagedBuffer release() {
    return this;
  }

  /** Reads a stream as an input stream. Used for TLS, which copies the bytes in any case. */
  static final class StreamInput extends InputStream {
    private final ServedStream stream;
    private final PieceReader reader;
    private long position;

    StreamInput(ServedStream stream) {
      this.stream = stream;
      this.reader = new PieceReader(stream, ByteBuffer.allocate(64 << 10));
    }

    @Override
    public int read() {
      if (position == stream.bytes()) {
        return -1;
      }
      return reader.from(position++).get() & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int length) {
      if (length == 0) {
        return 0;
      }
      if (position == stream.bytes()) {
        return -1;
      }
      ByteBuffer piece = reader.from(position);
      int count = Math.min(length, piece.remaining());
      piece.get(into, offset, count);
      stream.progressed();
      position += count;
      return count;
    }

    @Override
    public int available() {
      return (int) Math.min(Integer.MAX_VALUE, stream.bytes() - position);
    }
  }

  /** Sends a stream of blocks. The transport closes the stream, not this class. */
  static final class StreamRegion extends PacedRegion {
    private static final ThreadLocal<ByteBuffer> GATHERED =
        ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(256 << 10));

    private final ServedStream stream;
    private final PieceReader reader;

    StreamRegion(ServedStream stream) {
      super(stream.bytes());
      this.stream = stream;
      this.reader = new PieceReader(stream, GATHERED.get());
    }

    @Override
    protected ByteBuffer from(long position) {
      return reader.from(position);
    }

    @Override
    protected void progressed() {
      stream.progressed();
    }

    @Override
    protected void deallocate() {
      // The region owns nothing.
    }
  }

  /**
   * Reads the bytes of a stream in pieces that are worth a system call. A large chunk is returned
   * as a view of its segment. Small chunks are gathered in one buffer. For one thread.
   *
   * <p>Sending from the mapping is faster than sending from the file. For a socket on this host the
   * kernel copies once in both cases. Otherwise it takes a file's pages one by one, at half the
   * measured speed. Also, the kernel keeps no reference to memory that was sent, so the memory can
   * be reused at once.
   */
  static final class PieceReader {
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
    PieceReader(ServedStream stream, ByteBuffer gathered) {
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
}
