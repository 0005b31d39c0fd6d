package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat.ChunkName;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Encryption and decryption of chunks. */
class EncryptedChunksTest {
  private static final int PIECE = EncryptedChunkFormat.PIECE_BYTES;
  private static final ChunkName NAME = new ChunkName(7, -9, 3, 4);
  private static final EncryptionKey KEY = key(16, 1);

  private static EncryptionKey key(int bytes, int seed) {
    byte[] secret = new byte[bytes];
    new Random(seed).nextBytes(secret);
    return new EncryptionKey(secret);
  }

  private static ByteBuffer content(int bytes) {
    byte[] content = new byte[bytes];
    new Random(bytes).nextBytes(content);
    return ByteBuffer.allocateDirect(bytes).put(content).flip();
  }

  private static ByteBuffer seal(ChunkEncryptor sealer, ByteBuffer chunk) {
    int bytes = (int) EncryptedChunkFormat.encryptedBytes(chunk.remaining());
    ByteBuffer encrypted = ByteBuffer.allocateDirect(bytes);
    sealer.encrypt(NAME, chunk, encrypted);
    assertThat(encrypted.hasRemaining()).as("unused bytes").isFalse();
    return encrypted.flip();
  }

  private static ByteBuffer open(EncryptionKey key, ByteBuffer encrypted, int bytes)
      throws IOException {
    ByteBuffer chunk = ByteBuffer.allocateDirect(bytes);
    new ChunkDecryptor(Optional.of(key)).decrypt(NAME, encrypted.duplicate(), chunk);
    return chunk;
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 15, 16, 17, 4097, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 1_000_003})
  void anySizeRoundTrips(int bytes) throws IOException {
    ByteBuffer chunk = content(bytes);
    ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), chunk);
    assertThat(chunk.remaining()).as("the chunk is not changed").isEqualTo(bytes);
    assertThat(open(KEY, encrypted, bytes)).isEqualTo(chunk);
  }

  @ParameterizedTest
  @ValueSource(ints = {16, 24, 32})
  void anyKeySizeWorksAndOthersAreRefused(int bytes) throws IOException {
    ByteBuffer chunk = content(5000);
    assertThat(open(key(bytes, 2), seal(new ChunkEncryptor(key(bytes, 2)), chunk), 5000))
        .isEqualTo(chunk);
    assertThatThrownBy(() -> key(bytes + 1, 2)).hasMessageContaining("keySizeBits");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 13, 48, 4096, PIECE, PIECE + 16, PIECE + 17, 1 << 20})
  void partsOfAnySizeAndHeapBuffersAreAccepted(int part) throws IOException {
    ByteBuffer chunk = content(3 * PIECE + 5);
    ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), chunk);
    ByteBuffer target = ByteBuffer.allocateDirect(3 * PIECE + 5);
    ChunkDecryptor opener = new ChunkDecryptor(Optional.of(KEY));
    opener.begin(NAME, target);
    while (encrypted.hasRemaining()) {
      byte[] next = new byte[Math.min(part, encrypted.remaining())];
      encrypted.get(next);
      ByteBuffer given = ByteBuffer.wrap(next);
      opener.accept(given);
      assertThat(given.hasRemaining()).isFalse();
    }
    opener.end();
    assertThat(target).isEqualTo(chunk);
  }

  @Test
  void oneDecryptorHandlesManyExecutorsEvenAfterAFailure() throws IOException {
    ChunkDecryptor opener = new ChunkDecryptor(Optional.of(KEY));
    for (int i = 0; i < 6; i++) {
      ByteBuffer chunk = content(PIECE + i);
      ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), chunk);
      ByteBuffer target = ByteBuffer.allocateDirect(PIECE + i);
      ByteBuffer cut = encrypted.slice(0, 60 + PIECE);
      assertThatThrownBy(() -> opener.decrypt(NAME, cut, target))
          .isInstanceOf(ChecksumException.class);
      opener.decrypt(NAME, encrypted, target);
      assertThat(target).isEqualTo(chunk);
    }
  }

  @Property(tries = 400)
  void everyChangedByteIsNoticed(
      @ForAll @IntRange(max = PIECE + 200) int at, @ForAll @IntRange(min = 1, max = 255) int flip) {
    ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), content(PIECE + 100));
    int place = at % encrypted.limit();
    encrypted.put(place, (byte) (encrypted.get(place) ^ flip));
    assertThatThrownBy(() -> open(KEY, encrypted, PIECE + 100)).isInstanceOf(IOException.class);
  }

  @Property(tries = 200)
  void everyCutIsNoticed(@ForAll @IntRange(max = PIECE + 200) int cut) {
    ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), content(PIECE + 100));
    ByteBuffer part = encrypted.slice(0, cut % encrypted.limit());
    assertThatThrownBy(() -> open(KEY, part, PIECE + 100)).isInstanceOf(ChecksumException.class);
  }

  @Test
  void extraBytesAWrongLengthAndSwappedPiecesAreNoticed() {
    ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), content(2 * PIECE));
    ByteBuffer longer =
        ByteBuffer.allocate(encrypted.limit() + 1).put(encrypted.duplicate()).rewind();
    assertThatThrownBy(() -> open(KEY, longer, 2 * PIECE)).hasMessageContaining("after its last");
    assertThatThrownBy(() -> open(KEY, encrypted, PIECE))
        .hasMessageContaining("131072 bytes instead of");
    ByteBuffer swapped = ByteBuffer.allocate(encrypted.limit());
    int piece = EncryptedChunkFormat.ENCRYPTED_PIECE_BYTES;
    swapped.put(encrypted.slice(0, 48)).put(encrypted.slice(48 + piece, piece));
    swapped.put(encrypted.slice(48, piece)).flip();
    assertThatThrownBy(() -> open(KEY, swapped, 2 * PIECE))
        .hasMessageContaining("piece 0 of 2 of the encrypted chunk");
  }

  @Test
  void aWrongKeyAndAMissingKeyAreReported() {
    ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), content(100));
    assertThatThrownBy(() -> open(key(16, 9), encrypted, 100))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("encrypted with another key");
    assertThatThrownBy(() -> open(key(32, 1), encrypted, 100)).hasMessageContaining("another key");
    assertThatThrownBy(
            () ->
                new ChunkDecryptor(Optional.empty())
                    .decrypt(NAME, encrypted.duplicate(), ByteBuffer.allocateDirect(100)))
        .hasMessageContaining("this executor has no key")
        .hasMessageContaining("spark.io.encryption.enabled");
  }

  @Test
  void ciphertextsLookRandomAndDiffer() {
    byte[] zeros = new byte[PIECE];
    ChunkEncryptor sealer = new ChunkEncryptor(KEY);
    ByteBuffer first = seal(sealer, ByteBuffer.wrap(zeros));
    ByteBuffer second = seal(sealer, ByteBuffer.wrap(zeros));
    byte[] one = new byte[PIECE];
    byte[] other = new byte[PIECE];
    first.get(EncryptedChunkFormat.HEADER_BYTES, one);
    second.get(EncryptedChunkFormat.HEADER_BYTES, other);
    assertThat(one).isNotEqualTo(other);
    assertThat(IntStream.range(0, PIECE).filter(i -> one[i] == 0).count())
        .as("zeros; random bytes have one in 256")
        .isLessThan(PIECE / 64);
  }

  @ParameterizedTest
  @CsvSource({"8, -9, 3, 4", "7, 9, 3, 4", "7, -10, 3, 4", "7, -9, 4, 3", "7, -9, 3, 5"})
  void aChunkIsNotDecryptedUnderAnotherName(int shuffle, long map, int partition, int position)
      throws IOException {
    ByteBuffer chunk = content(2 * PIECE);
    ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), chunk);
    ChunkDecryptor opener = new ChunkDecryptor(Optional.of(KEY));
    ByteBuffer target = ByteBuffer.allocateDirect(2 * PIECE);
    ChunkName other = new ChunkName(shuffle, map, partition, position);
    assertThatThrownBy(() -> opener.decrypt(other, encrypted.duplicate(), target))
        .isInstanceOf(ChecksumException.class)
        .hasMessageContaining("piece 0 of 2 of the encrypted chunk is damaged or of another chunk");
    opener.decrypt(new ChunkName(7, -9, 3, 4), encrypted, target);
    assertThat(target).isEqualTo(chunk);
  }

  /** A nonce consists of the chunk number and the piece number. Each salt has its own key. */
  @Test
  void noNonceIsUsedTwiceWithAKey() {
    Set<String> used = ConcurrentHashMap.newKeySet();
    ChunkEncryptor[] executors = {
      new ChunkEncryptor(KEY), new ChunkEncryptor(KEY), new ChunkEncryptor(KEY)
    };
    IntStream.range(0, 3000)
        .parallel()
        .forEach(
            i -> {
              ByteBuffer encrypted = seal(executors[i % 3], ByteBuffer.wrap(new byte[i % 50]));
              byte[] saltAndNumber = new byte[EncryptedChunkFormat.SALT_BYTES + Long.BYTES];
              encrypted.get(8, saltAndNumber);
              assertThat(used.add(Arrays.toString(saltAndNumber))).isTrue();
            });
    assertThat(used).hasSize(3000);
    assertThat(used.stream().map(each -> each.substring(0, 30)).distinct()).hasSize(3);
  }

  @Test
  void eachSaltHasItsOwnKey() {
    byte[] one = new byte[EncryptedChunkFormat.SALT_BYTES];
    byte[] other = one.clone();
    other[3] = 1;
    assertThat(KEY.derive(one).key()).isEqualTo(KEY.derive(one.clone()).key());
    assertThat(KEY.derive(one).key()).isNotEqualTo(KEY.derive(other).key());
    assertThat(KEY.derive(one).check()).isNotEqualTo(KEY.derive(other).check());
    assertThat(KEY.toString()).as("no secret in logs").matches("io\\.weft.*EncryptionKey@.*");
  }

  @Test
  void anotherVersionIsNamed() {
    ByteBuffer encrypted = seal(new ChunkEncryptor(KEY), content(10));
    encrypted.order(ByteOrder.LITTLE_ENDIAN).putInt(4, 9);
    assertThatThrownBy(() -> open(KEY, encrypted, 10))
        .hasMessageContaining("not an encrypted chunk of version 2")
        .hasMessageContaining("version 9");
  }
}
