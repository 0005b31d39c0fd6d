package io.weft.tcp;

import io.netty.handler.stream.ChunkedStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
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
}
