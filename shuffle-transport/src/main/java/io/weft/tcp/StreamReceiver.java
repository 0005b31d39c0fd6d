package io.weft.tcp;

import java.nio.ByteBuffer;
import org.apache.spark.network.client.StreamCallback;

/**
 * Takes the bytes of a stream, and lends its memory so that the kernel may put them there without a
 * buffer in between. Called on the connection's event loop only, {@link #room} and {@link
 * #roomReturned} in turn.
 */
public interface StreamReceiver extends StreamCallback {
  /**
   * Lends the memory for the bytes of the stream that come next, which stays as it is until {@link
   * #roomReturned}. They are then handed over by {@link #onData} like all others, in a buffer of
   * this very memory.
   *
   * @return direct; null if the bytes are to come in a buffer of the connection
   */
  ByteBuffer room();

  /** Nobody writes into the memory lent any more; whether and how much was written is not said. */
  void roomReturned();
}
