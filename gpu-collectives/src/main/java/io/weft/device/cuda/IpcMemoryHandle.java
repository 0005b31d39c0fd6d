package io.weft.device.cuda;

import com.sun.jna.Structure;

/** The struct CUipcMemHandle: 64 opaque bytes, passed by value. */
@Structure.FieldOrder("reserved")
public final class IpcMemoryHandle extends Structure implements Structure.ByValue {
  static final int BYTES = 64;

  /** Public because JNA reads it. */
  @SuppressWarnings("MutablePublicArray")
  public byte[] reserved = new byte[BYTES];

  /** Public because JNA creates instances. */
  public IpcMemoryHandle() {
    // All bytes are zero.
  }

  IpcMemoryHandle(byte[] bytes) {
    System.arraycopy(bytes, 0, reserved, 0, BYTES);
    write();
  }
}
