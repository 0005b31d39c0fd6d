package io.weft.tensor.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Bytes that are not an encoded tensor are reported, and no memory is allocated for them. */
class CorruptTensorTest {
  /** Guard bytes around the decoded memory, which must not change. */
  private static final int GUARD = 64;

  private static ByteBuffer sample(CodecKind kind, int count) {
    Tensor tensor = Tensor.allocate(TensorType.of(DataType.FLOAT32, 1, count));
    for (int i = 0; i < count; i++) {
      Memory.putFloat(tensor.address() + 4L * i, i % 10);
    }
    return Encodings.encode(kind, tensor);
  }

  /** A copy whose memory ends with its bytes. */
  private static ByteBuffer copy(ByteBuffer encoded, int bytes) {
    return Encodings.direct(bytes).put(encoded.slice(0, bytes)).flip();
  }

  @ParameterizedTest
  @EnumSource
  void everyTruncationIsReportedAndNothingIsAllocated(CodecKind kind) {
    ByteBuffer whole = sample(kind, 100);
    for (int bytes = 0; bytes < whole.remaining(); bytes++) {
      ByteBuffer cut = copy(whole, bytes);
      assertThatThrownBy(
              () ->
                  TensorDecoder.decode(
                      Memory.addressOf(cut),
                      cut.remaining(),
                      type -> {
                        throw new AssertionError(type + " is allocated for a truncated body");
                      }))
          .isInstanceOf(CorruptTensorException.class);
      Reference.reachabilityFence(cut);
    }
  }

  @ParameterizedTest
  @EnumSource
  void additionalBytesAreReported(CodecKind kind) {
    ByteBuffer whole = sample(kind, 100);
    ByteBuffer longer = Encodings.direct(whole.remaining() + 1).put(whole).clear();
    assertThatThrownBy(() -> TensorDecoder.decode(longer))
        .isInstanceOf(CorruptTensorException.class);
  }

  @Property(tries = 1000)
  void changedBytesGiveATensorOrAnError(
      @ForAll CodecKind kind,
      @ForAll @IntRange(max = 3000) int count,
      @ForAll int[] places,
      @ForAll byte change) {
    ByteBuffer encoded = sample(kind, count);
    for (int place : places) {
      int at = Math.floorMod(place, encoded.remaining());
      encoded.put(at, (byte) (encoded.get(at) ^ change));
    }
    decodeOrFail(encoded);
  }

  /** Most changes are in the body; these are in the fields that decide lengths. */
  @Property(tries = 1000)
  void changedHeadersGiveATensorOrAnError(
      @ForAll CodecKind kind,
      @ForAll @IntRange(max = 50) int count,
      @ForAll @IntRange(min = 4, max = 39) int place,
      @ForAll byte value) {
    ByteBuffer encoded = sample(kind, count);
    if (place < encoded.remaining()) {
      encoded.put(place, value);
    }
    decodeOrFail(encoded);
  }

  @Property(tries = 500)
  void noiseIsAnError(@ForAll byte[] noise, @ForAll boolean magic) {
    ByteBuffer bytes = Encodings.direct(noise.length).put(noise).flip();
    if (magic && noise.length >= 4) {
      bytes.putInt(0, TensorHeader.MAGIC);
    }
    decodeOrFail(bytes);
  }

  private static void decodeOrFail(ByteBuffer encoded) {
    ByteBuffer exact = copy(encoded, encoded.remaining());
    AtomicLong allocated = new AtomicLong();
    try {
      Tensor decoded =
          TensorDecoder.decode(
              Memory.addressOf(exact),
              exact.remaining(),
              type -> {
                allocated.addAndGet(type.bytes());
                return guarded(type);
              });
      checkGuards(decoded);
    } catch (CorruptTensorException e) {
      assertThat(e).hasMessageContaining("tensor");
    }
    Reference.reachabilityFence(exact);
    // Zstandard frames of equal bytes are the smallest.
    assertThat(allocated.get()).isLessThanOrEqualTo(1L << 20);
  }

  private static Tensor guarded(TensorType type) {
    ByteBuffer memory = Encodings.direct(type.bytes() + 2 * GUARD);
    Memory.setMemory(Memory.addressOf(memory), memory.capacity(), (byte) 0x5a);
    return Tensor.of(
        type,
        TypedBuffer.wrap(memory.slice(GUARD, (int) type.bytes()), DataType.INT8).as(type.dtype()));
  }

  private static void checkGuards(Tensor decoded) {
    for (int i = 1; i <= GUARD; i++) {
      assertThat(Memory.getByte(decoded.address() - i)).isEqualTo((byte) 0x5a);
      assertThat(Memory.getByte(decoded.address() + decoded.type().bytes() + i - 1))
          .isEqualTo((byte) 0x5a);
    }
  }

  @Test
  void aShapeLargerThanTheBodyTakesNoMemory() {
    for (CodecKind kind : CodecKind.values()) {
      ByteBuffer encoded = sample(kind, 100);
      encoded.putLong(24, 1L << 50);
      assertThatThrownBy(() -> TensorDecoder.decode(encoded))
          .as("%s", kind)
          .isInstanceOf(CorruptTensorException.class)
          .hasMessageContaining("float32[1, 1125899906842624]");
    }
  }

  @Test
  void errorsAreDescribed() {
    assertWrong(0, "another format or version");
    assertWrong(3, "another format or version");
    assertWrong(4, "no codec has the number 99");
    assertWrong(5, "no data type has the number 99");
    assertWrong(6, "it has 99 dimensions");
    assertWrong(7, "unknown bits");
    assertWrong(8, "its scale is 2^99");
    assertWrong(12, "unknown bits");
  }

  private static void assertWrong(int place, String message) {
    ByteBuffer encoded = sample(CodecKind.NONE, 3);
    encoded.put(place, (byte) 99);
    assertThatThrownBy(() -> TensorDecoder.decode(encoded))
        .isInstanceOf(CorruptTensorException.class)
        .hasMessageContaining(message);
  }
}
