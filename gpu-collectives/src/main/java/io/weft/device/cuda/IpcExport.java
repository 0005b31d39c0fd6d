package io.weft.device.cuda;

import io.weft.device.HostEvent;

/**
 * A lease on device memory for other processes of the host. The memory stays until the lease is
 * closed, also after its holder has closed the memory. Close it when all importers have released
 * the memory or ended; they report that by their own means. Thread-safe.
 */
public final class IpcExport implements AutoCloseable {
  private final IpcHandle handle;
  private final HostEvent lease;

  private IpcExport(IpcHandle handle, HostEvent lease) {
    this.handle = handle;
    this.lease = lease;
  }

  /**
   * Exports memory.
   *
   * @param memory of a pool of {@link CudaMemoryPool.Kind#DEVICE}
   * @throws IllegalArgumentException when it is of another kind, which the driver cannot export
   * @throws IllegalStateException when it was closed
   */
  public static IpcExport of(CudaMemory memory) {
    if (memory.source() != CudaMemoryPool.Kind.DEVICE) {
      throw new IllegalArgumentException(
          memory.source().what()
              + " cannot be exported to other processes, "
              + CudaMemoryPool.Kind.DEVICE.what()
              + " can");
    }
    HostEvent lease = new HostEvent("an export of " + memory.bytes() + " bytes");
    memory.usedUntil(lease);
    try {
      return new IpcExport(handle(memory.device(), memory.address(), memory.bytes()), lease);
    } catch (RuntimeException e) {
      lease.fail(e);
      throw e;
    }
  }

  /** Describes memory of {@link CudaMemoryPool.Kind#DEVICE} for other processes. */
  static IpcHandle handle(CudaDevice device, long address, long bytes) {
    device.use();
    byte[] handle = new byte[IpcMemoryHandle.BYTES];
    CudaLibrary.check(
        CudaFunctions.cuIpcGetMemHandle(handle, address),
        "cuIpcGetMemHandle of memory of " + device);
    long[] base = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuMemGetAddressRange_v2(base, new long[1], address),
        "cuMemGetAddressRange of memory of " + device);
    return new IpcHandle(
        ProcessHandle.current().pid(),
        device.description().uuid(),
        address - base[0],
        bytes,
        handle);
  }

  /** The handle to send to other processes. */
  public IpcHandle handle() {
    return handle;
  }

  /** Ends the lease. */
  @Override
  public void close() {
    lease.complete();
  }
}
