package io.weft.transfers;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;
import java.util.ArrayList;
import java.util.List;

/**
 * Raw memory that a transfer writes into or reads from. It returns to its owner, for example its
 * {@link ReceiveMemory}, once its holder has closed it and every registered use has ended.
 *
 * <p>Thread-safe.
 */
public final class TransferBuffer implements BufferOwner, AutoCloseable {
  private final long address;
  private final long bytes;
  private final Runnable giveBack;
  private int holders = 1;
  private boolean closed;

  /** Actions for the return; null afterwards. */
  private List<Runnable> whenReturned = new ArrayList<>(0);

  /**
   * Creates a buffer with one holder.
   *
   * @param giveBack run once, after the last holder and the last use
   */
  public TransferBuffer(long address, long bytes, Runnable giveBack) {
    this.address = address;
    this.bytes = bytes;
    this.giveBack = giveBack;
  }

  /** The memory as an array of this shape, which must fit. */
  public TypedBuffer as(BufferShape shape) {
    return TypedBuffer.of(this, 0, shape.type(), shape.elements());
  }

  /**
   * The address of the bytes.
   *
   * @throws IllegalStateException if the buffer was given back
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
    event.whenReleased(this::release);
  }

  /** Ends the hold of the holder. Registered uses go on. */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    release();
  }

  private void release() {
    synchronized (this) {
      holders--;
      if (holders > 0) {
        return;
      }
    }
    giveBack.run();
    List<Runnable> actions;
    synchronized (this) {
      actions = whenReturned;
      whenReturned = null;
    }
    actions.forEach(Runnable::run);
  }

  /** Runs an action when the memory has returned to its owner; at once if it has. */
  public void whenReturned(Runnable action) {
    synchronized (this) {
      if (whenReturned != null) {
        whenReturned.add(action);
        return;
      }
    }
    action.run();
  }
}
