package io.weft.collectives.host;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/**
 * A rank's description of itself for the others, when a communicator is created.
 *
 * @param hostIdentity ranks with the same one may share memory
 * @param process differs between processes, also between restarts with one process id
 * @param folder of its segments
 * @param token content of the token file in the folder
 */
record RankAddress(String hostIdentity, String process, String folder, String token) {
  /** Increases when the meaning of any message between ranks changes. */
  private static final int VERSION = 2;

  byte[] encode() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeInt(VERSION);
    out.writeUTF(hostIdentity);
    out.writeUTF(process);
    out.writeUTF(folder);
    out.writeUTF(token);
    return bytes.toByteArray();
  }

  static RankAddress decode(byte[] bytes) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    int version = in.readInt();
    if (version != VERSION) {
      throw new IOException(
          "a rank speaks version " + version + " of the host collectives, this one " + VERSION);
    }
    return new RankAddress(in.readUTF(), in.readUTF(), in.readUTF(), in.readUTF());
  }
}
