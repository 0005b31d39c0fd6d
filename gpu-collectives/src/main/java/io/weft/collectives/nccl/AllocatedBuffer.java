package io.weft.collectives.nccl;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.DeviceBuffers.Windowed;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import java.util.Objects;
import java.util.Optional;

/** One of the {@link DeviceBuffers}, until no use of it is left. Thread-safe. */
final class AllocatedBuffer implements GpuBuffer, BufferOwner {
  private final NcclCommunicator communicator;
  private final Windowed segment;
  private final int number;
  private final long offset;
  private final long runBytes;
  private final long bytes;
  private final TypedBuffer elements;
  private boolean isClosed;

  /** The uses that have not ended, and the buffer itself. */
  private int uses = 1;

  private Runnable onRelease = () -> {};

  AllocatedBuffer(
      NcclCommunicator communicator,
      Windowed segment,
      int number,
      long offset,
      long runBytes,
      DataType type,
      long count) {
    this.communicator = communicator;
    this.segment = segment;
    this.number = number;
    this.offset = offset;
    this.runBytes = runBytes;
    this.bytes = count * type.bytes();
    this.elements = TypedBuffer.of(this, 0, type, count);
  }

  int number() {
    return number;
  }

  Windowed segment() {
    return segment;
  }

  @Override
  public synchronized long address() {
    requireOpen();
    return segment.segment().memory().address() + offset;
  }

  private void requireOpen() {
    if (isClosed) {
      throw new IllegalStateException("the buffer is closed");
    }
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public boolean isOnHost() {
    return false;
  }

  @Override
  public void usedUntil(Event event) {
    synchronized (this) {
      requireOpen();
      uses++;
    }
    event.whenReleased(this::endUse);
  }

  private void endUse() {
    Runnable action;
    synchronized (this) {
      uses--;
      action = uses == 0 ? onRelease : () -> {};
    }
    action.run();
  }

  synchronized boolean isReleased() {
    return uses == 0;
  }

  /** Runs the action when no use is left, or at once; for one caller, after the close. */
  void whenReleased(Runnable action) {
    synchronized (this) {
      if (uses > 0) {
        onRelease = action;
        return;
      }
    }
    action.run();
  }

  void freeRun() {
    segment.runs().give(offset, runBytes);
  }

  @Override
  public TypedBuffer elements() {
    return elements;
  }

  @Override
  public Optional<String> whyNoWindow() {
    return segment.whyNoWindow();
  }

  @Override
  public void write(TypedBuffer source, long first) {
    Objects.checkFromIndexSize(first, source.count(), elements.count());
    copy(elements.slice(first, source.count()), source);
  }

  @Override
  public void read(TypedBuffer target, long first) {
    Objects.checkFromIndexSize(first, target.count(), elements.count());
    copy(target, elements.slice(first, target.count()));
  }

  private void copy(TypedBuffer to, TypedBuffer from) {
    if (to.type() != from.type()) {
      throw CollectiveException.invalid("a copy of " + from.type() + " to " + to.type());
    }
    if (to.count() > 0) {
      HostEvent use = new HostEvent("a copy of " + to.bytes() + " bytes");
      communicator.copy(held(to, use), held(from, use), use);
    }
  }

  /** Keeps the memory until the use ends, and returns its current place. */
  private static TypedBuffer held(TypedBuffer buffer, HostEvent use) {
    try {
      buffer.owner().usedUntil(use);
      return buffer.current();
    } catch (IllegalStateException e) {
      use.complete();
      throw CollectiveException.invalid(buffer + " was freed: " + e.getMessage());
    }
  }

  @Override
  public void close() {
    synchronized (this) {
      if (isClosed) {
        return;
      }
      isClosed = true;
    }
    endUse();
  }
}
