package io.weft.crosshost.buffer;

import io.weft.collectives.buffer.BufferOwner;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Event;

/**
 * Raw memory that a transfer writes into. It goes back to the {@link ReceiveMemory} it came from
 * once its holder has closed it and every use that was announced has ended.
 *
 * <p>Thread-safe.
 */
public final class TransferBuffer implements BufferOwner, AutoCloseable {
  private final long address;
  private final long bytes;
  private final Runnable giveBack;
  private int holders = 1;
  private boolean closed;

  /**
   * A buffer that somebody holds.
   *
   * @param giveBack run once, when nobody holds or uses it any more
   */
  public TransferBuffer(long address, long bytes, Runnable giveBack) {
    this.address = address;
    this.bytes = bytes;
    this.giveBack = giveBack;
  }

  /** All of it as an array of this shape, which has to fit. */
  public TypedBuffer as(BufferShape shape) {
    return TypedBuffer.of(this, 0, shape.type(), shape.elements());
  }

  /**
   * Where the bytes are.
   *
   * @throws IllegalStateException when nobody holds the buffer any more
   */
  @Override
  public synchronized long address() {
    if (holders == 0) {
      throw new IllegalStateException("the transfer buffer of " + bytes + " bytes was given back");
    }
    return address;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public void usedUntil(Event event) {
    synchronized (this) {
      if (holders == 0) {
        throw new IllegalStateException(
            "the transfer buffer of " + bytes + " bytes was given back before " + event.what());
      }
      holders++;
    }
    event.whenReleased(this::letGo);
  }

  /** The holder needs it no more; uses that were announced go on. */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    letGo();
  }

  private void letGo() {
    synchronized (this) {
      holders--;
      if (holders > 0) {
        return;
      }
    }
    giveBack.run();
  }
}
