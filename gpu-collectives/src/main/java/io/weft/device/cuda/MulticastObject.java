package io.weft.device.cuda;

import io.weft.device.descriptor.Descriptor;
import io.weft.memory.Bytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Memory of several GPUs that one write reaches, as one process has it: created by one process,
 * taken over by the others from a descriptor. One thread at a time.
 *
 * <p>The driver waits, without end, for what comes out of this order, so callers agree on each
 * step: all have {@link #join joined} before any {@link #bind binds}, all have bound before any
 * device writes.
 */
public final class MulticastObject implements AutoCloseable {
  /** A POSIX file descriptor, as the driver numbers kinds of handles. */
  static final int DESCRIPTORS = 1;

  /** The fewest GPUs that there is multicast for. */
  static final int PAIR = 2;

  private static final int PROPERTY_BYTES = 32;
  private static final int LEAST = 0;

  private final CudaDevice device;
  private final long handle;
  private final long bytes;
  private final long granularity;
  private final List<Binding> bindings = new ArrayList<>();

  /** The addresses it has for the device; 0 where it has none. */
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
   * What sizes, offsets and addresses are multiples of.
   *
   * @param devices how many take part, 2 or more
   * @param bytes that each of them is to bind, 1 or more
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
   * Creates one.
   *
   * @param device of this process, which is to write to it
   * @param devices how many take part
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
   * Takes over one of another thread or process.
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

  /** CUmulticastObjectProp: devices, size, handle types, no flags. */
  private static byte[] properties(int devices, long bytes) {
    return ByteBuffer.allocate(PROPERTY_BYTES)
        .order(ByteOrder.nativeOrder())
        .putInt(devices)
        .putInt(0)
        .putLong(bytes)
        .putLong(DESCRIPTORS)
        .array();
  }

  /** Gives a descriptor for the others, which the caller closes. */
  public Descriptor export() {
    int[] descriptor = new int[1];
    CudaLibrary.check(
        CudaMulticastFunctions.cuMemExportToShareableHandle(descriptor, handle, DESCRIPTORS, 0),
        "exporting multicast memory of " + device);
    return Descriptor.of(descriptor[0]);
  }

  /** Adds this object's device to those that take part. */
  public void join() {
    CudaLibrary.check(
        CudaMulticastFunctions.cuMulticastAddDevice(handle, ordinalHandle()),
        "adding " + device + " to multicast memory");
  }

  private int ordinalHandle() {
    return CudaLibrary.handle(device.description().ordinal());
  }

  /**
   * Has writes go to memory of this device, until it is closed.
   *
   * @param offset in the object
   * @param memory at a multiple of the granularity, of {@link VirtualMemory#forMulticast}
   * @return how many bytes were bound: those of the memory up to the next granule
   * @throws IllegalArgumentException when it is other memory, or begins elsewhere
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
   * @throws IllegalArgumentException saying why not
   */
  public static void requireBindable(CudaMemory memory, long granularity) {
    if (!(memory.source() instanceof VirtualMemory each && each.isForMulticast())) {
      throw new IllegalArgumentException(
          memory.source().what()
              + " cannot be written by multicast, VirtualMemory.forMulticast can");
    }
    if (each.granularity() % granularity != 0) {
      throw new IllegalArgumentException(
          "the driver has granules of %d bytes for multicast of so many GPUs, the memory is in such of %d"
              .formatted(granularity, each.granularity()));
    }
    if (memory.address() % granularity != 0) {
      throw new IllegalArgumentException(
          "memory for multicast starts at a multiple of "
              + granularity
              + ": take it first, of a whole segment");
    }
  }

  /** The bytes of memory up to the next granule, which its segment has. */
  public static long boundBytes(CudaMemory memory, long granularity) {
    return (memory.bytes() + granularity - 1) / granularity * granularity;
  }

  /**
   * Maps it for this device. Only instructions for multicast may use the address.
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

  /** Takes it from this device, of which nothing writes to it any more; memory stays bound. */
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
   * Ends it here; no device writes to this one's memory any more.
   *
   * @throws CudaException when the driver does not let go of everything: memory may be bound still.
   *     The next call goes on from there
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
