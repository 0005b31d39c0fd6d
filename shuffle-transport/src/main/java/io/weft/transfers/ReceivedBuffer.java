package io.weft.transfers;

import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;

/**
 * An array that arrives at this executor. The memory is allocated; its contents are defined once
 * the event is complete. Closing withdraws the transfer unless it has ended, and frees the memory
 * after the last use. A transfer that both ends have matched runs to its end.
 *
 * <p>Thread-safe.
 */
public final class ReceivedBuffer implements AutoCloseable {
  private final TransferBuffer memory;
  private final BufferShape shape;
  private final PreparedTransfer transfer;
  private final Event event;

  ReceivedBuffer(TransferBuffer memory, BufferShape shape, PreparedTransfer transfer, Event event) {
    this.memory = memory;
    this.shape = shape;
    this.transfer = transfer;
    this.event = event;
  }

  /** The memory; a reader that outlives this object calls {@link TransferBuffer#usedUntil}. */
  public TransferBuffer memory() {
    return memory;
  }

  public BufferShape shape() {
    return shape;
  }

  /** The elements. */
  public TypedBuffer buffer() {
    return transfer.buffer();
  }

  /** The progress of the transfer: recorded once it is launched, always ends. */
  public Event event() {
    return event;
  }

  @Override
  public void close() {
    transfer.withdraw("its holder has closed it");
    memory.close();
  }
}
