package io.weft.collectives.bootstrap;

import io.weft.collectives.UniqueId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The first bytes on a connection. The connecting rank names the communicator, its rank and the
 * purpose. It proves that it knows the secret of the unique id without revealing it. The accepting
 * rank answers with its own proof.
 *
 * <pre>
 *  0        4         8          24     28   32        36            68
 *  +--------+---------+----------+------+----+---------+-------------+
 *  | "WFTC" | version | id (16)  | from | to | purpose | proof (32)  |   greeting
 *  +--------+---------+----------+------+----+---------+-------------+
 *  | proof (32) |                                                        welcome
 *  +------------+
 * </pre>
 *
 * <p>The proofs are HMAC-SHA256 (RFC 2104) over all preceding bytes, the welcome over the same
 * bytes with another label. Numbers are big-endian.
 *
 * @param from the rank that connects
 * @param to the rank that accepts
 */
public record Greeting(int from, int to, Purpose purpose) {
  /** What a connection is for. A code never changes its meaning. */
  public enum Purpose {
    BOOTSTRAP(1),
    CONTROL(2),
    PAIRS(3),
    COLLECTIVES(4);

    private final int code;

    Purpose(int code) {
      this.code = code;
    }
  }

  static final int BYTES = 68;
  static final int WELCOME_BYTES = 32;

  private static final int MAGIC = 0x57465443;
  private static final int VERSION = 2;
  private static final int PROOF = 36;
  private static final String ALGORITHM = "HmacSHA256";

  byte[] encode(UniqueId id) {
    byte[] claim = claim(id);
    return ByteBuffer.allocate(BYTES).put(claim).put(proof(id, "greeting", claim)).array();
  }

  private byte[] claim(UniqueId id) {
    return ByteBuffer.allocate(PROOF)
        .putInt(MAGIC)
        .putInt(VERSION)
        .put(HexFormat.of().parseHex(id.name()))
        .putInt(from)
        .putInt(to)
        .putInt(purpose.code)
        .array();
  }

  /** The answer of the accepting side. */
  byte[] welcome(UniqueId id) {
    return proof(id, "welcome", claim(id));
  }

  private static byte[] proof(UniqueId id, String label, byte[] claim) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(id.secret(), ALGORITHM));
      mac.update(label.getBytes(StandardCharsets.US_ASCII));
      return mac.doFinal(claim);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java platform has " + ALGORITHM, e);
    }
  }

  /**
   * Decodes and verifies a greeting of this communicator.
   *
   * @param in all its bytes
   * @throws IOException saying why the sender does not belong to the communicator
   */
  static Greeting decode(ByteBuffer in, UniqueId id) throws IOException {
    if (in.getInt(0) != MAGIC) {
      throw new IOException("it does not speak this protocol");
    }
    if (in.getInt(4) != VERSION) {
      throw new IOException("it speaks version " + in.getInt(4) + ", this rank " + VERSION);
    }
    Greeting greeting = new Greeting(in.getInt(24), in.getInt(28), purpose(in.getInt(32)));
    byte[] actual = new byte[BYTES];
    in.get(0, actual);
    if (!MessageDigest.isEqual(greeting.encode(id), actual)) {
      throw new IOException("it does not know the secret of communicator " + id);
    }
    return greeting;
  }

  private static Purpose purpose(int code) throws IOException {
    for (Purpose purpose : Purpose.values()) {
      if (purpose.code == code) {
        return purpose;
      }
    }
    throw new IOException("it connects for the unknown purpose " + code);
  }
}
