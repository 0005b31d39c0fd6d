package io.weft.crosshost.gpu;

import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/**
 * The outcome of the start of NCCL at one end.
 *
 * @param kind of the failure; empty if it succeeded
 * @param reason of the failure
 * @param id for another communicator, if one is needed; the id of rank 0 is used
 */
record Outcome(String kind, String reason, String id) {
  private static final int MOST_REASON = 1000;

  /** The outcome for a failure; null means success. */
  static Outcome of(CollectiveException failure) {
    String id = UniqueId.create().encode();
    return failure == null
        ? new Outcome("", "", id)
        : new Outcome(failure.kind().name(), reason(failure), id);
  }

  static String reason(CollectiveException failure) {
    String text = "it did not start: " + failure.getMessage();
    return text.substring(0, Math.min(MOST_REASON, text.length()));
  }

  boolean isWell() {
    return kind.isEmpty();
  }

  /** Whether NCCL failed, but both ends still work and can go on without NCCL. */
  boolean isObstacle() {
    return kind.equals(Kind.MISMATCH.name())
        || kind.equals(Kind.IO.name())
        || kind.equals(Kind.INVALID.name());
  }

  byte[] encode() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeUTF(kind);
      out.writeUTF(reason);
      out.writeUTF(id);
    }
    return bytes.toByteArray();
  }

  /**
   * Reads what {@link #encode} wrote.
   *
   * @throws IllegalArgumentException if the bytes have another format
   */
  static Outcome decode(byte[] bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      return new Outcome(in.readUTF(), in.readUTF(), in.readUTF());
    } catch (IOException e) {
      throw new IllegalArgumentException("the other end's message about NCCL is damaged", e);
    }
  }
}
