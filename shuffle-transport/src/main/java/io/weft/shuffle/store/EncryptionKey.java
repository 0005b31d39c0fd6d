package io.weft.shuffle.store;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;

/**
 * An application's secret. The keys that encrypt chunks are derived from it, one for each salt. So
 * executors number their chunks independently and still never use a nonce twice with one key.
 * Immutable; never prints the secret.
 */
public final class EncryptionKey {
  private static final byte[] PURPOSE = "weft sealed chunk".getBytes(StandardCharsets.US_ASCII);
  private static final String HASH = "HmacSHA512";
  private static final int CHECK_AT = 32;

  private final SecretKeySpec secret;
  private final int keyBytes;

  /**
   * Copies the secret.
   *
   * @param secret of 16, 24 or 32 bytes; derived keys have the same length
   */
  public EncryptionKey(byte[] secret) {
    if (secret.length != 16 && secret.length != 24 && secret.length != 32) {
      throw new IllegalArgumentException(
          "a key of "
              + Byte.SIZE * secret.length
              + " bits for spilled blocks; spark.io.encryption.keySizeBits allows 128, 192 and 256");
    }
    this.secret = new SecretKeySpec(secret, HASH);
    this.keyBytes = secret.length;
  }

  /**
   * A key for a salt.
   *
   * @param check identifies the secret and the salt, but reveals neither
   */
  record Derived(SecretKey key, long check) {}

  Derived derive(byte[] salt) {
    try {
      Mac mac = Mac.getInstance(HASH);
      mac.init(secret);
      mac.update(PURPOSE);
      byte[] made = mac.doFinal(salt);
      SecretKey key = new SecretKeySpec(Arrays.copyOf(made, keyBytes), "AES");
      return new Derived(key, ByteBuffer.wrap(made).getLong(CHECK_AT));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this JVM has no " + HASH, e);
    }
  }
}
