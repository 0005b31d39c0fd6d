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
 * The message that the two ends of a clique exchange before they choose a path.
 *
 * @param life id and incarnation of the executor, for example "2@00c0ffee"
 * @param end the properties that the choice depends on
 * @param pids the pid namespace of the process, for example "pid:[4026531836]"; empty if unknown.
 *     Only within one namespace can an end check whether the other process is alive
 */
record RankEnd(String life, PathEnd end, String pids) {
  private static final Path PID_NAMESPACE = Path.of("/proc/self/ns/pid");

  /** The message of this process. */
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

  /** Whether each end can detect by the pid that the other's process has ended. */
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
   * @throws IllegalArgumentException if the bytes have another format
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
      throw new IllegalArgumentException("the other end's message about its GPU is damaged", e);
    }
  }
}
