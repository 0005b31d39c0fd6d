package io.weft.tcp;

import java.nio.ByteBuffer;
import org.apache.spark.network.client.StreamCallback;

/**
 * Takes the bytes of a stream, and lends its memory so that the kernel may put them there without a
 * buffer in between. Called on the connection's event loop only.
 */
public interface StreamReceiver extends StreamCallback {
  /** Bytes of the whole stream on the wire, as far as the peer has told; asked before it comes. */
  long streamBytes();

  /**
   * Lends the memory for the bytes of the stream that come next, until {@link #roomReturned}. They
   * are handed over by {@link #onData} like all others, in a buffer of this very memory.
   *
   * @return direct; null if the bytes are to come in a buffer of the connection
   */
  ByteBuffer room();

  /**
   * Nobody writes or reads the memory any more that {@link #room} lent, called once for each time
   * it lent some; whether and how much was written is not said.
   */
  void roomReturned();
}
