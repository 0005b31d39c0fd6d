package io.weft.device.cuda;

import io.weft.device.Event;
import io.weft.device.HostEvent;

/**
 * Device memory of another process, mapped into this one. It is unmapped when it has been closed
 * and the events of all its uses have ended; only then may the other process be told so. Where the
 * other process ends before, the driver keeps the memory until then. Thread-safe.
 */
public final class IpcMemory implements AutoCloseable {
  private static final int WITH_PEER_ACCESS = 1;

  private final CudaDevice device;
  private final long base;
  private final long address;
  private final long bytes;
  private final HostEvent unmapped;
  private int uses = 1;
  private boolean closed;

  private IpcMemory(CudaDevice device, long base, long address, long bytes) {
    this.device = device;
    this.base = base;
    this.address = address;
    this.bytes = bytes;
    this.unmapped = new HostEvent("the use of " + bytes + " bytes of another process");
  }

  /**
   * Maps it.
   *
   * @param device of this process, which is to use the memory; the one where it lies, or a peer
   * @throws IllegalArgumentException when the memory is this process's own, or shorter than is said
   * @throws CudaException when the driver does not map it, as that of a process that has ended
   */
  public static IpcMemory open(CudaDevice device, IpcHandle handle) {
    if (handle.pid() == ProcessHandle.current().pid()) {
      throw new IllegalArgumentException(
          handle + " is this process's own: use its address, the driver maps only that of others");
    }
    device.use();
    long[] base = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuIpcOpenMemHandle_v2(
            base, new IpcMemoryHandle(handle.handle()), WITH_PEER_ACCESS),
        "mapping " + handle + " for " + device);
    try {
      requireWithin(base[0], handle);
    } catch (RuntimeException e) {
      int unused = CudaFunctions.cuIpcCloseMemHandle(base[0]);
      throw e;
    }
    return new IpcMemory(device, base[0], base[0] + handle.offset(), handle.bytes());
  }

  private static void requireWithin(long base, IpcHandle handle) {
    long[] whole = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuMemGetAddressRange_v2(new long[1], whole, base), "cuMemGetAddressRange");
    if (handle.offset() > whole[0] || handle.bytes() > whole[0] - handle.offset()) {
      throw new IllegalArgumentException(
          handle + " at " + handle.offset() + " reaches beyond the " + whole[0] + " bytes there");
    }
  }

  /**
   * Where it lies in this process.
   *
   * @throws IllegalStateException when it was closed
   */
  public synchronized long address() {
    if (closed) {
      throw new IllegalStateException("the memory of another process was closed");
    }
    return address;
  }

  public long bytes() {
    return bytes;
  }

  /**
   * Keeps it mapped until the event has ended, also when it is closed before.
   *
   * @throws IllegalStateException when it is unmapped already
   */
  public void usedUntil(Event event) {
    synchronized (this) {
      if (uses == 0) {
        throw new IllegalStateException(event.what() + " comes after the memory was unmapped");
      }
      uses++;
    }
    event.whenReleased(this::endUse);
  }

  private void endUse() {
    synchronized (this) {
      if (--uses > 0) {
        return;
      }
    }
    try {
      device.use();
      CudaLibrary.check(
          CudaFunctions.cuIpcCloseMemHandle(base), "unmapping memory of another process");
      unmapped.complete();
    } catch (RuntimeException e) {
      unmapped.fail(e);
      throw e;
    }
  }

  /** Completes when it is unmapped: when the process that has it may be told so. */
  public Event unmapped() {
    return unmapped;
  }

  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    endUse();
  }
}
