package io.weft.collectives.bootstrap;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.FailureCode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Encodes and decodes the messages of {@link SocketBootstrap}. Stateless. */
final class RoundMessages {
  static final int MAX_BYTES = 1 << 20;
  private static final int MAX_FAILURE_BYTES = 4096;

  private RoundMessages() {}

  /** Encodes a rank's message for a round. */
  static byte[] encode(String round, byte[] content) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeUTF(round);
    out.write(content);
    return bytes.toByteArray();
  }

  /** The round that a rank's message belongs to. */
  static String round(byte[] message) throws IOException {
    return new DataInputStream(new ByteArrayInputStream(message)).readUTF();
  }

  /** The content of a rank's message. */
  static byte[] content(byte[] message) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
    String unused = in.readUTF();
    return in.readAllBytes();
  }

  static byte[] all(List<byte[]> contents) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeByte(0);
    for (byte[] content : contents) {
      out.writeInt(content.length);
      out.write(content);
    }
    return bytes.toByteArray();
  }

  static byte[] failure(CollectiveException cause) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    bytes.write(1);
    bytes.write(FailureCode.encode(cause, MAX_FAILURE_BYTES));
    return bytes.toByteArray();
  }

  /**
   * Decodes the messages of all ranks.
   *
   * @throws CollectiveException when rank 0 sent a failure instead
   */
  static List<byte[]> decode(byte[] message, int nranks) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(message));
    if (in.readByte() != 0) {
      throw FailureCode.decode(in.readAllBytes());
    }
    List<byte[]> contents = new ArrayList<>();
    for (int rank = 0; rank < nranks; rank++) {
      contents.add(content(in, rank));
    }
    return contents;
  }

  private static byte[] content(DataInputStream in, int rank) throws IOException {
    int length = in.readInt();
    if (length < 0 || length > in.available()) {
      throw new IOException(
          "the message of rank %d has %d bytes, but only %d arrived"
              .formatted(rank, length, in.available()));
    }
    return in.readNBytes(length);
  }

  static void check(byte[] content) {
    if (content.length > MAX_BYTES) {
      throw new IllegalArgumentException(
          "a message of " + content.length + " bytes; at most " + MAX_BYTES + " are allowed");
    }
  }
}
