package io.weft.device.cuda;

import io.weft.memory.Bytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Memory of several GPUs that one write reaches, as one process sees it. One process creates it,
 * the others open it from a descriptor. Used by one thread at a time.
 *
 * <p>The driver waits forever after a call in the wrong order, so callers agree on each step. All
 * {@link #join join} before any {@link #bind binds}, and all bind before any device writes.
 */
public final class MulticastObject implements AutoCloseable {
  /** The driver's number for handles that are POSIX file descriptors. */
  static final int DESCRIPTORS = 1;

  /** The fewest GPUs for multicast. */
  static final int PAIR = 2;

  private static final int PROPERTY_BYTES = 32;
  private static final int LEAST = 0;

  private final CudaDevice device;
  private final long handle;
  private final long bytes;
  private final long granularity;
  private final List<Binding> bindings = new ArrayList<>();

  /** The addresses that are mapped for the device; 0 for none. */
  private long address;

  private boolean mapped;

  private boolean closed;

  private MulticastObject(CudaDevice device, long handle, long bytes, long granularity) {
    this.device = device;
    this.handle = handle;
    this.bytes = bytes;
    this.granularity = granularity;
  }

  private record Binding(long offset, long bytes) {}

  /**
   * The granule of sizes, offsets and addresses.
   *
   * @param devices the number of devices, 2 or more
   * @param bytes the bytes that each device binds, 1 or more
   */
  public static long granularity(int devices, long bytes) {
    long[] granularity = new long[1];
    CudaLibrary.check(
        CudaMulticastFunctions.cuMulticastGetGranularity(
            granularity, properties(devices, bytes), LEAST),
        "cuMulticastGetGranularity for " + devices + " devices");
    return granularity[0];
  }

  /**
   * Creates an object.
   *
   * @param device the device of this process, which will write to it
   * @param devices the number of devices
   * @param bytes a multiple of the granularity
   */
  public static MulticastObject create(CudaDevice device, int devices, long bytes) {
    device.use();
    long granularity = granularity(devices, bytes);
    long[] handle = new long[1];
    CudaLibrary.check(
        CudaMulticastFunctions.cuMulticastCreate(handle, properties(devices, bytes)),
        "creating multicast memory of " + Bytes.text(bytes) + " for " + devices + " devices");
    return new MulticastObject(device, handle[0], bytes, granularity);
  }

  /**
   * Opens the object of another thread or process.
   *
   * @param descriptor stays the caller's
   * @param devices as it was created
   * @param bytes as it was created
   */
  public static MulticastObject of(
      CudaDevice device, Descriptor descriptor, int devices, long bytes) {
    device.use();
    long granularity = granularity(devices, bytes);
    long[] handle = new long[1];
    CudaLibrary.check(
        CudaMulticastFunctions.cuMemImportFromShareableHandle(
            handle, descriptor.number(), DESCRIPTORS),
        "taking over multicast memory for " + device);
    return new MulticastObject(device, handle[0], bytes, granularity);
  }

  /** The struct CUmulticastObjectProp: devices, size, handle types, no flags. */
  static byte[] properties(int devices, long bytes) {
    return ByteBuffer.allocate(PROPERTY_BYTES)
        .order(ByteOrder.nativeOrder())
        .putInt(devices)
        .putInt(0)
        .putLong(bytes)
        .putLong(DESCRIPTORS)
        .array();
  }

  /** Returns a descriptor for the other processes; the caller closes it. */
  public Descriptor export() {
    int[] descriptor = new int[1];
    CudaLibrary.check(
        CudaMulticastFunctions.cuMemExportToShareableHandle(descriptor, handle, DESCRIPTORS, 0),
        "exporting multicast memory of " + device);
    return Descriptor.of(descriptor[0]);
  }

  /** Adds this object's device to the multicast group. */
  public void join() {
    CudaLibrary.check(
        CudaMulticastFunctions.cuMulticastAddDevice(handle, ordinalHandle()),
        "adding " + device + " to multicast memory");
  }

  private int ordinalHandle() {
    return CudaLibrary.handle(device.description().ordinal());
  }

  /**
   * Directs writes to memory of this device, until it is closed.
   *
   * @param offset the offset in the object
   * @param memory at a multiple of the granularity, of {@link VirtualMemory#forMulticast}
   * @return the bound bytes: those of the memory up to the next granule
   * @throws IllegalArgumentException when it is other memory, or not aligned
   */
  public long bind(long offset, CudaMemory memory) {
    requireBindable(memory, granularity);
    long length = boundBytes(memory, granularity);
    device.use();
    CudaLibrary.check(
        CudaMulticastFunctions.cuMulticastBindAddr(handle, offset, memory.address(), length, 0),
        "binding " + Bytes.text(length) + " of " + device + " to multicast memory");
    bindings.add(new Binding(offset, length));
    return length;
  }

  /**
   * Checks that memory can be bound.
   *
   * @throws IllegalArgumentException with the reason if it cannot
   */
  public static void requireBindable(CudaMemory memory, long granularity) {
    if (!(memory.source() instanceof VirtualMemory each && each.isForMulticast())) {
      throw new IllegalArgumentException(
          memory.source().what()
              + " cannot be written by multicast, VirtualMemory.forMulticast can");
    }
    if (each.granularity() % granularity != 0) {
      throw new IllegalArgumentException(
          "the driver needs granules of %d bytes for multicast, the memory has granules of %d"
              .formatted(granularity, each.granularity()));
    }
    if (memory.address() % granularity != 0) {
      throw new IllegalArgumentException(
          "memory for multicast starts at a multiple of "
              + granularity
              + ": take it first, from a new segment");
    }
  }

  /** The length of the memory, rounded up to the next granule, which its segment contains. */
  public static long boundBytes(CudaMemory memory, long granularity) {
    return (memory.bytes() + granularity - 1) / granularity * granularity;
  }

  /**
   * Maps the object for this device. Only multicast instructions may use the address.
   *
   * @return the address, a multiple of the granularity
   */
  public long map() {
    String what = "multicast memory of " + device;
    device.use();
    long reserved = VirtualRange.reserve(bytes, granularity, what);
    try {
      VirtualRange.map(device, reserved, bytes, handle, what);
    } catch (CudaException e) {
      VirtualRange.unreserve(reserved, bytes);
      throw e;
    }
    address = reserved;
    mapped = true;
    return reserved;
  }

  /** Unmaps the object from this device, which no longer writes to it; memory stays bound. */
  public void unmap() {
    String what = "multicast memory of " + device;
    device.use();
    if (mapped) {
      VirtualRange.unmap(address, bytes, what);
      mapped = false;
    }
    if (address != 0) {
      VirtualRange.giveUp(address, bytes, what);
      address = 0;
    }
  }

  /**
   * Closes the object; no device writes to this device's memory any more.
   *
   * @throws CudaException when the driver fails to release all of it. Memory may still be bound;
   *     another call continues from there
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    unmap();
    while (!bindings.isEmpty()) {
      Binding next = bindings.get(0);
      CudaLibrary.check(
          CudaMulticastFunctions.cuMulticastUnbind(
              handle, ordinalHandle(), next.offset(), next.bytes()),
          "unbinding memory of " + device);
      bindings.remove(0);
    }
    CudaLibrary.check(CudaFunctions.cuMemRelease(handle), "releasing multicast memory");
    closed = true;
  }
}
