package io.weft.tcp;

import java.nio.ByteBuffer;
import org.apache.spark.network.client.StreamCallback;

/**
 * Receives the bytes of a stream. It lends its memory, so that the kernel can write the bytes there
 * without a buffer in between. Called on the connection's event loop only.
 */
public interface StreamReceiver extends StreamCallback {
  /** The bytes of the whole stream on the wire, as the peer announced. Called before it arrives. */
  long streamBytes();

  /**
   * Lends memory for the next bytes of the stream, until {@link #roomReturned}. {@link #onData}
   * receives these bytes like all others, in a buffer of this memory.
   *
   * @return a direct buffer; null if the connection shall use its own buffer
   */
  ByteBuffer room();

  /**
   * Takes back memory that {@link #room} lent. No thread uses it any more. Called once for each
   * lent buffer. Does not tell how many bytes were written.
   */
  void roomReturned();
}
