package io.weft.crosshost.buffer;

import io.weft.collectives.buffer.BufferOwner;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Event;
import io.weft.memory.Extent;

/**
 * Raw memory that a transfer writes into. It goes back to the {@link TransferBuffers} it came from
 * once its holder has closed it and every use that was announced has ended.
 *
 * <p>Thread-safe.
 */
public final class TransferBuffer implements BufferOwner, AutoCloseable {
  private final TransferBuffers home;
  private final Extent extent;
  private final long bytes;
  private int holders = 1;
  private boolean closed;

  TransferBuffer(TransferBuffers home, Extent extent, long bytes) {
    this.home = home;
    this.extent = extent;
    this.bytes = bytes;
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
    return extent.address();
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
    event.whenDone(failure -> letGo());
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
    home.takeBack(extent);
  }
}
