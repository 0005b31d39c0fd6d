package io.weft.device.cuda;

import com.sun.jna.Pointer;
import io.weft.memory.Memory;

/** A small block of host memory for one call of the driver. Used by one thread at a time. */
final class NativeBlock implements AutoCloseable {
  private final long address;

  private NativeBlock(long address) {
    this.address = address;
  }

  static NativeBlock zeroed(long bytes) {
    long address = Memory.allocate(bytes);
    Memory.setMemory(address, bytes, (byte) 0);
    return new NativeBlock(address);
  }

  long address() {
    return address;
  }

  /** The bytes up to the first zero. */
  String text() {
    return new Pointer(address).getString(0);
  }

  @Override
  public void close() {
    Memory.free(address);
  }
}
