package io.weft.collectives.nccl;

import com.sun.jna.Structure;

/** NCCL's own unique id: 128 opaque bytes, passed by value. */
@Structure.FieldOrder("internal")
public final class NcclUniqueId extends Structure implements Structure.ByValue {
  static final int BYTES = 128;

  /** Read by JNA, hence public. */
  @SuppressWarnings("MutablePublicArray")
  public byte[] internal = new byte[BYTES];

  /** For JNA, which makes instances by itself. */
  public NcclUniqueId() {
    // All zero.
  }

  NcclUniqueId(byte[] bytes) {
    System.arraycopy(bytes, 0, internal, 0, BYTES);
    write();
  }
}
