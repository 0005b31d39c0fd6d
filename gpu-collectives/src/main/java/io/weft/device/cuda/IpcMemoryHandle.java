package io.weft.device.cuda;

import com.sun.jna.Structure;

/** CUipcMemHandle: 64 opaque bytes, passed by value. */
@Structure.FieldOrder("reserved")
public final class IpcMemoryHandle extends Structure implements Structure.ByValue {
  static final int BYTES = 64;

  /** Read by JNA, hence public. */
  @SuppressWarnings("MutablePublicArray")
  public byte[] reserved = new byte[BYTES];

  /** For JNA, which makes instances by itself. */
  public IpcMemoryHandle() {
    // All zero.
  }

  IpcMemoryHandle(byte[] bytes) {
    System.arraycopy(bytes, 0, reserved, 0, BYTES);
    write();
  }
}
