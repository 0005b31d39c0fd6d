package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The length of encrypted chunks. */
class EncryptedChunkFormatTest {
  private static final long MAX_EXTENT = (1L << 31) - 64;

  @ParameterizedTest
  @CsvSource({
    "0, 64",
    "1, 65",
    "65535, 65599",
    "65536, 65600",
    "65537, 65617",
    "131072, 131152",
    "2147483584, 2148007920",
    "4294967296, 4296015920",
    "1099511627777, 1099780063297"
  })
  void aHeaderAndATagForEachPiece(long bytes, long encrypted) {
    assertThat(EncryptedChunkFormat.encryptedBytes(bytes)).isEqualTo(encrypted);
  }

  @Test
  void theLongestChunkFitsAnExtentAndOneByteMoreDoesNot() {
    assertThat(EncryptedChunkFormat.encryptedBytes(EncryptedChunkFormat.MAX_BYTES))
        .isBetween(MAX_EXTENT - 64, MAX_EXTENT);
    assertThat(EncryptedChunkFormat.encryptedBytes(EncryptedChunkFormat.MAX_BYTES + 1))
        .isGreaterThan(MAX_EXTENT);
  }

  @Test
  void noncesOfPiecesAndChunksDiffer() {
    assertThat(EncryptedChunkFormat.nonce(7, 3).getIV())
        .isNotEqualTo(EncryptedChunkFormat.nonce(7, 4).getIV());
    assertThat(EncryptedChunkFormat.nonce(7, 3).getIV())
        .isNotEqualTo(EncryptedChunkFormat.nonce(8, 3).getIV());
    assertThat(EncryptedChunkFormat.nonce(1L << 32, 0).getIV())
        .isNotEqualTo(EncryptedChunkFormat.nonce(0, 1).getIV());
    assertThat(EncryptedChunkFormat.nonce(7, 3).getIV()).hasSize(12);
  }
}
