package io.weft.tensor.codec;

import static io.weft.tensor.codec.Encodings.bytes;
import static io.weft.tensor.codec.Encodings.encode;
import static io.weft.tensor.codec.Encodings.floats;
import static io.weft.tensor.codec.Encodings.roundTrip;
import static io.weft.tensor.codec.Encodings.tensor;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class TensorCodecTest {
  /** Two pieces and a part of one. */
  private static final int COUNT = 2 * TensorEncoder.PIECE_ELEMENTS + 17;

  private static float[] gaussian(int count) {
    Random random = new Random(count);
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) random.nextGaussian();
    }
    return values;
  }

  @ParameterizedTest
  @CsvSource({"NONE, 4", "BFLOAT16, 2", "FLOAT8_E4M3, 1", "FLOAT8_E5M2, 1"})
  void bytesAreCountedByElementPlusAHeader(CodecKind kind, int width) {
    for (int count : new int[] {0, 1, 7, TensorEncoder.PIECE_ELEMENTS, COUNT}) {
      Tensor tensor = tensor(new float[count]);
      assertThat(encode(kind, tensor).remaining()).isEqualTo(24 + width * count);
      assertThat(kind.codec().encoder(tensor).bound()).isEqualTo(24 + (long) width * count);
    }
  }

  @ParameterizedTest
  @EnumSource
  void shapesAreDecoded(CodecKind kind) {
    for (long[] shape : new long[][] {{}, {1}, {0}, {3, 0, 5}, {2, 3, 4, 5}, {1, 70_000}}) {
      Tensor tensor = Tensor.allocate(TensorType.of(DataType.FLOAT32, shape));
      Tensor decoded = TensorDecoder.decode(encode(kind, tensor));
      assertThat(decoded.type()).isEqualTo(tensor.type());
      assertThat(bytes(decoded)).isEqualTo(bytes(tensor));
    }
  }

  /** The tensor may be an activation, which is needed again. */
  @ParameterizedTest
  @EnumSource
  void theSourceIsOnlyReadAndSharesNothing(CodecKind kind) {
    Tensor tensor = tensor(gaussian(COUNT));
    byte[] before = bytes(tensor);
    ByteBuffer encoded = encode(kind, tensor);
    assertThat(bytes(tensor)).isEqualTo(before);
    Tensor decoded = TensorDecoder.decode(encoded);
    byte[] right = bytes(decoded);
    Memory.setMemory(Memory.addressOf(encoded), encoded.capacity(), (byte) 0x55);
    Memory.setMemory(tensor.address(), tensor.type().bytes(), (byte) 0x55);
    assertThat(bytes(decoded)).isEqualTo(right);
  }

  /** A piece that is being sent must not change, and the next piece does not need it. */
  @ParameterizedTest
  @EnumSource
  void piecesAreCompleteWhenTheyAreReturned(CodecKind kind) {
    Tensor tensor = tensor(gaussian(COUNT));
    ByteBuffer whole = encode(kind, tensor);
    TensorEncoder encoder = kind.codec().encoder(tensor);
    ByteBuffer sent = Encodings.direct(encoder.bound());
    ByteBuffer piece = Encodings.direct(8 * TensorEncoder.PIECE_ELEMENTS);
    int pieces = 0;
    while (encoder.hasNext()) {
      Memory.setMemory(Memory.addressOf(piece), piece.capacity(), (byte) pieces);
      int bytes = encoder.next(Memory.addressOf(piece), piece.capacity());
      sent.put(piece.slice(0, bytes));
      pieces++;
    }
    assertThat(pieces).isEqualTo(4);
    assertThat(sent.flip()).isEqualTo(whole);
  }

  /** The scale is that of the whole tensor before the first piece is complete. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT8_E4M3", "FLOAT8_E5M2"})
  void theLargestElementMayBeTheLast(CodecKind kind) {
    float[] values = new float[COUNT];
    Arrays.fill(values, 1);
    values[COUNT - 1] = 1 << 14;
    assertThat(roundTrip(kind, values)).isEqualTo(values);
  }

  @ParameterizedTest
  @CsvSource({
    "FLOAT8_E4M3, 448, 0",
    "FLOAT8_E4M3, 449, -1",
    "FLOAT8_E4M3, 1, 8",
    "FLOAT8_E4M3, 0x1p-149, 157",
    "FLOAT8_E4M3, 0x1.fffffep127, -120",
    "FLOAT8_E5M2, 57344, 0",
    "FLOAT8_E5M2, 57345, -1",
    "FLOAT8_E5M2, 0x1p-149, 164",
    "FLOAT8_E5M2, 0x1.fffffep127, -113"
  })
  void theScaleIsTheLargestPowerOfTwoThatFits(CodecKind kind, float amax, int exponent) {
    TensorHeader header = kind.codec().encoder(tensor(0, -amax, amax / 2)).header();
    assertThat(header.scaleExponent()).isEqualTo(exponent);
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT8_E4M3", "FLOAT8_E5M2"})
  void theScaleIsOneWhereThereIsNothingToScale(CodecKind kind) {
    for (float[] values :
        new float[][] {{}, {0, -0f, 0}, {Float.NaN, Float.NEGATIVE_INFINITY, 0}}) {
      assertThat(kind.codec().encoder(tensor(values)).header().scaleExponent()).isZero();
    }
    assertThat(roundTrip(kind, 0, -0f, 0)).isEqualTo(new float[] {0, -0f, 0});
  }

  /** No tensor affects the next one. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT8_E4M3", "FLOAT8_E5M2"})
  void everyTensorHasItsOwnScale(CodecKind kind) {
    float[] large = {1e30f, -1e25f};
    float[] small = {0x1p-100f, -0x1p-104f};
    float[] first = roundTrip(kind, small);
    roundTrip(kind, large);
    assertThat(roundTrip(kind, small)).isEqualTo(first).isEqualTo(small);
  }

  /** Values of 8 bits are decoded exactly with any scale: the inverse is the reciprocal. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT8_E4M3", "FLOAT8_E5M2"})
  void theInverseIsExact(CodecKind kind) {
    float[] digits = {1, 1.25f, 1.5f, 1.75f, 0.5f, -1.25f, 0.125f};
    for (int exponent = -140; exponent <= 127; exponent++) {
      float[] values = new float[digits.length];
      for (int i = 0; i < digits.length; i++) {
        values[i] = Math.scalb(digits[i], exponent);
      }
      assertThat(roundTrip(kind, values)).as("2^%s", exponent).isEqualTo(values);
    }
  }

  @Test
  void nonFiniteValuesDoNotAffectOthers() {
    float[] values = {1, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.NaN, -0.5f};
    assertThat(roundTrip(CodecKind.NONE, values)).isEqualTo(values);
    assertThat(roundTrip(CodecKind.ZSTD, values)).isEqualTo(values);
    assertThat(roundTrip(CodecKind.BFLOAT16, values)).isEqualTo(values);
    assertThat(roundTrip(CodecKind.FLOAT8_E5M2, values)).isEqualTo(values);
    assertThat(roundTrip(CodecKind.FLOAT8_E4M3, values))
        .isEqualTo(new float[] {1, Float.NaN, Float.NaN, Float.NaN, -0.5f});
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT8_E4M3", "FLOAT8_E5M2"})
  void theLargestFloatStaysFinite(CodecKind kind) {
    float[] decoded = roundTrip(kind, Float.MAX_VALUE, -Float.MAX_VALUE, 1, Float.MIN_VALUE);
    assertThat(decoded[1]).isEqualTo(-decoded[0]);
    assertThat(decoded[0] / Float.MAX_VALUE).isBetween(0.85f, 1f);
    assertThat(decoded[3]).isZero();
  }

  @Test
  void bfloat16OverflowsAtTheEndOfItsRange() {
    float[] decoded = roundTrip(CodecKind.BFLOAT16, 0x1.fefffep127f, 0x1.ffp127f, -0x1.ffp127f);
    assertThat(decoded)
        .isEqualTo(new float[] {0x1.fep127f, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY});
  }

  @ParameterizedTest
  @EnumSource
  void losslessCodecsKeepEveryBit(DataType dtype) {
    for (int count : new int[] {0, 1, 3, COUNT}) {
      Tensor tensor = Tensor.allocate(TensorType.of(dtype, count));
      byte[] noise = new byte[(int) tensor.type().bytes()];
      new Random(1).nextBytes(noise);
      Arrays.fill(noise, 0, noise.length / 2, (byte) 3);
      tensor.byteBuffer().put(noise);
      for (CodecKind kind : new CodecKind[] {CodecKind.NONE, CodecKind.ZSTD}) {
        assertThat(bytes(TensorDecoder.decode(encode(kind, tensor)))).isEqualTo(noise);
      }
    }
  }

  @Test
  void zstdShrinksSimilarValuesAndHardlyGrowsOthers() {
    Tensor smooth = tensor(gaussian(COUNT));
    assertThat(encode(CodecKind.ZSTD, smooth).remaining()).isLessThan(4 * COUNT * 9 / 10);
    byte[] random = new byte[4 * COUNT];
    new Random(2).nextBytes(random);
    Tensor noise = Tensor.allocate(TensorType.of(DataType.INT32, COUNT));
    noise.byteBuffer().put(random);
    assertThat(encode(CodecKind.ZSTD, noise).remaining()).isLessThanOrEqualTo(24 + 4 * COUNT + 12);
  }

  @ParameterizedTest
  @EnumSource(names = {"BFLOAT16", "FLOAT8_E4M3", "FLOAT8_E5M2"})
  void lossyCodecsTakeNothingButFloat32(CodecKind kind) {
    for (DataType dtype : DataType.values()) {
      boolean taken = dtype == DataType.FLOAT32;
      assertThat(kind.orNone(dtype)).isEqualTo(taken ? kind : CodecKind.NONE);
      if (!taken) {
        assertThatThrownBy(() -> kind.codec().encoder(Tensor.empty(dtype)))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining(dtype.toString());
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void anEncoderRefusesTooLittleRoomAndAClosedTensor(CodecKind kind) {
    Tensor tensor = tensor(1, 2, 3);
    TensorEncoder encoder = kind.codec().encoder(tensor);
    ByteBuffer target = Encodings.direct(encoder.bound());
    long address = Memory.addressOf(target);
    assertThatThrownBy(() -> encoder.next(address, 23))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(encoder.next(address, 24)).isEqualTo(24);
    assertThatThrownBy(() -> encoder.next(address + 24, encoder.nextBound() - 1))
        .isInstanceOf(IllegalArgumentException.class);
    tensor.close();
    assertThatThrownBy(() -> encoder.next(address + 24, 100))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("float32[3]");
  }

  @Test
  void rowsOfATensorAreTensors() {
    Tensor tensor = tensor(gaussian(1000));
    Tensor middle = tensor.rows(100, 333);
    float[] expected = Arrays.copyOfRange(floats(tensor), 100, 433);
    assertThat(floats(TensorDecoder.decode(encode(CodecKind.ZSTD, middle)))).isEqualTo(expected);
  }
}
