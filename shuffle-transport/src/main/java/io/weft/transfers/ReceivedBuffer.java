package io.weft.transfers;

import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;

/**
 * An array that arrives at this executor. The memory is allocated; its contents are defined once
 * the event is complete. Closing frees the memory after the last use.
 *
 * <p>Thread-safe.
 *
 * @param memory of the array; a reader that outlives this record calls {@link
 *     TransferBuffer#usedUntil}
 * @param buffer the elements
 * @param event the progress of the transfer; recorded once it is launched, always ends
 */
public record ReceivedBuffer(
    TransferBuffer memory, BufferShape shape, TypedBuffer buffer, Event event)
    implements AutoCloseable {
  @Override
  public void close() {
    memory.close();
  }
}
