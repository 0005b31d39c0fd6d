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
 * How it went at one end to make a communicator of NCCL.
 *
 * @param kind of the failure; empty text where it went well
 * @param reason of the failure
 * @param id for another communicator, if one is needed; the one of rank 0 is taken
 */
record Outcome(String kind, String reason, String id) {
  private static final int MOST_REASON = 1000;

  /** Of a failure, or null where there was none. */
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

  /** Whether it failed, but both ends are still there and can do without NCCL. */
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
   * @throws IllegalArgumentException if it is something else
   */
  static Outcome decode(byte[] bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      return new Outcome(in.readUTF(), in.readUTF(), in.readUTF());
    } catch (IOException e) {
      throw new IllegalArgumentException("what the other end says of NCCL is damaged", e);
    }
  }
}
