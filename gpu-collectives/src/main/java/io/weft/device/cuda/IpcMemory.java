package io.weft.device.cuda;

import io.weft.device.Event;
import io.weft.device.HostEvent;

/**
 * Device memory of another process, mapped into this process. It is unmapped when it is closed and
 * the events of all its uses have ended. Only then may the other process be told. If the other
 * process ends earlier, the driver keeps the memory until then. Thread-safe.
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
   * Maps memory of another process.
   *
   * @param device the device of this process that uses the memory: the GPU of the memory, or a peer
   * @throws IllegalArgumentException when the memory is of this process, or shorter than described
   * @throws CudaException when the driver does not map it, as after the end of the other process
   */
  public static IpcMemory open(CudaDevice device, IpcHandle handle) {
    if (handle.pid() == ProcessHandle.current().pid()) {
      throw new IllegalArgumentException(
          handle + " is of this process: use its address, the driver maps only memory of others");
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
   * The address in this process.
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
   * Keeps it mapped until the event has ended, also after it is closed.
   *
   * @throws IllegalStateException when it is already unmapped
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

  /** Completes when the memory is unmapped and the owning process may be told. */
  Event unmapped() {
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
