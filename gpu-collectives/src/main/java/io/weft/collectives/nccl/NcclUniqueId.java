package io.weft.collectives.nccl;

import com.sun.jna.Structure;

/** NCCL's own unique id: 128 opaque bytes, passed by value. */
@Structure.FieldOrder("internal")
public final class NcclUniqueId extends Structure implements Structure.ByValue {
  static final int BYTES = 128;

  /** Public because JNA reads it. */
  @SuppressWarnings("MutablePublicArray")
  public byte[] internal = new byte[BYTES];

  /** For JNA, which creates instances itself. */
  public NcclUniqueId() {
    // All bytes are zero.
  }

  NcclUniqueId(byte[] bytes) {
    System.arraycopy(bytes, 0, internal, 0, BYTES);
    write();
  }
}
