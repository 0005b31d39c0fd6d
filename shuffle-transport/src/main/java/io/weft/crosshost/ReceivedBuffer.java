package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.crosshost.buffer.BufferShape;
import io.weft.crosshost.buffer.TransferBuffer;
import io.weft.device.Event;

/**
 * An array that is on its way here. The memory is there already; its contents are defined once the
 * event is complete. Closing it gives the memory back, as soon as nothing uses it any more.
 *
 * <p>Thread-safe.
 *
 * @param memory what the array lies in; a reader that outlives this record says so by {@link
 *     TransferBuffer#usedUntil}
 * @param buffer the elements
 * @param event how far the transfer is; recorded once it has left, ends always
 */
public record ReceivedBuffer(
    TransferBuffer memory, BufferShape shape, TypedBuffer buffer, Event event)
    implements AutoCloseable {
  @Override
  public void close() {
    memory.close();
  }
}
