package io.weft.crosshost.gpu;

import io.weft.peer.GpuEnd;
import io.weft.peer.PathEnd;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/**
 * What the two ends of a clique tell each other before they choose a way.
 *
 * @param life of the executor, such as "2@00c0ffee"
 * @param end what the choice depends on
 */
record RankEnd(String life, PathEnd end) {
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
      return new RankEnd(life, new PathEnd(kernel, gpu));
    } catch (IOException e) {
      throw new IllegalArgumentException("what the other end says of its GPU is damaged", e);
    }
  }
}
