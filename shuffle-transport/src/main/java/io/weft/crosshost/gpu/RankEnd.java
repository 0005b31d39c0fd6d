package io.weft.crosshost.gpu;

import io.weft.peer.GpuEnd;
import io.weft.peer.PathEnd;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * What the two ends of a clique tell each other before they choose a way.
 *
 * @param life of the executor, such as "2@00c0ffee"
 * @param end what the choice depends on
 * @param pids the namespace of its process's number, such as "pid:[4026531836]", without which the
 *     other end cannot tell whether it lives; empty where it is unknown
 */
record RankEnd(String life, PathEnd end, String pids) {
  private static final Path PID_NAMESPACE = Path.of("/proc/self/ns/pid");

  /** Of this process. */
  RankEnd(String life, PathEnd end) {
    this(life, end, ownPids());
  }

  private static String ownPids() {
    try {
      return Files.readSymbolicLink(PID_NAMESPACE).toString();
    } catch (IOException | UnsupportedOperationException e) {
      return "";
    }
  }

  /** Whether each can tell by its number that the other's process has ended. */
  boolean seesProcessOf(RankEnd other) {
    return pids.equals(other.pids) && !pids.isEmpty();
  }

  byte[] encode() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    GpuEnd gpu = end.gpu();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeUTF(life);
      out.writeUTF(end.kernel());
      out.writeUTF(gpu.uuid());
      out.writeInt(gpu.ordinal());
      out.writeUTF(gpu.name());
      out.writeUTF(gpu.nccl());
      out.writeUTF(gpu.obstacle());
      out.writeUTF(pids);
    }
    return bytes.toByteArray();
  }

  /**
   * Reads what {@link #encode} wrote.
   *
   * @throws IllegalArgumentException if it is something else
   */
  static RankEnd decode(byte[] bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      String life = in.readUTF();
      String kernel = in.readUTF();
      String uuid = in.readUTF();
      int ordinal = in.readInt();
      GpuEnd gpu = new GpuEnd(uuid, ordinal, in.readUTF(), in.readUTF(), in.readUTF());
      return new RankEnd(life, new PathEnd(kernel, gpu), in.readUTF());
    } catch (IOException e) {
      throw new IllegalArgumentException("what the other end says of its GPU is damaged", e);
    }
  }
}
