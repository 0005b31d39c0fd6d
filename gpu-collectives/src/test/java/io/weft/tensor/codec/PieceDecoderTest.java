package io.weft.tensor.codec;

import static io.weft.tensor.codec.Encodings.bytes;
import static io.weft.tensor.codec.Encodings.tensor;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Pieces that are decoded one by one, each in memory of its own. */
class PieceDecoderTest {
  private static final int COUNT = 2 * TensorEncoder.PIECE_ELEMENTS + 17;

  private static Tensor noise() {
    Random random = new Random(5);
    float[] values = new float[COUNT];
    for (int i = 0; i < COUNT; i++) {
      values[i] = (float) random.nextGaussian();
    }
    return tensor(values);
  }

  private static Tensor zeros(long... shape) {
    return Tensor.allocate(TensorType.of(DataType.FLOAT32, shape));
  }

  @ParameterizedTest
  @EnumSource
  void piecesDecodeToTheSameTensor(CodecKind kind) {
    Tensor tensor = noise();
    Tensor target = zeros(COUNT);
    TensorEncoder encoder = kind.codec().encoder(tensor);
    PieceDecoder decoder = new PieceDecoder(kind, target);
    ByteBuffer piece = Encodings.direct(8 * TensorEncoder.PIECE_ELEMENTS);
    long at = Memory.addressOf(piece);
    assertThat(decoder.begin(at, encoder.next(at, piece.capacity()))).isEqualTo(24);
    while (decoder.hasNext()) {
      decoder.next(at, encoder.next(at, piece.capacity()));
      Memory.setMemory(at, piece.capacity(), (byte) 0x55);
    }
    assertThat(encoder.hasNext()).isFalse();
    assertThat(bytes(target))
        .isEqualTo(bytes(TensorDecoder.decode(Encodings.encode(kind, tensor))));
    assertThatThrownBy(() -> decoder.next(at, 4)).isInstanceOf(IllegalStateException.class);
  }

  @ParameterizedTest
  @EnumSource
  void anotherTypeOrCodecIsRefusedBeforeAnythingIsWritten(CodecKind kind) {
    ByteBuffer encoded = Encodings.encode(kind, tensor(1, 2, 3));
    long at = Memory.addressOf(encoded);
    Tensor shaped = zeros(3, 1);
    assertThatThrownBy(() -> new PieceDecoder(kind, shaped).begin(at, encoded.limit()))
        .isInstanceOf(CorruptTensorException.class)
        .hasMessageContaining("float32[3] encoded as " + kind)
        .hasMessageContaining("float32[3, 1]");
    CodecKind other = kind == CodecKind.NONE ? CodecKind.ZSTD : CodecKind.NONE;
    assertThatThrownBy(() -> new PieceDecoder(other, zeros(3)).begin(at, encoded.limit()))
        .isInstanceOf(CorruptTensorException.class)
        .hasMessageContaining("as " + other);
    assertThat(bytes(shaped)).containsOnly(0);
  }

  @ParameterizedTest
  @EnumSource
  void aPieceOfAnotherLengthIsRefused(CodecKind kind) {
    ByteBuffer encoded = Encodings.encode(kind, tensor(1, 2, 3));
    long at = Memory.addressOf(encoded);
    Tensor target = zeros(3);
    PieceDecoder decoder = new PieceDecoder(kind, target);
    int header = decoder.begin(at, encoded.limit());
    for (int wrong : new int[] {0, 1, encoded.limit() - header - 1, encoded.limit() - header + 1}) {
      assertThatThrownBy(() -> decoder.next(at + header, wrong))
          .isInstanceOf(CorruptTensorException.class);
    }
    assertThat(bytes(target)).containsOnly(0);
    decoder.next(at + header, encoded.limit() - header);
    assertThat(decoder.hasNext()).isFalse();
  }
}
