package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.spark.Tensors;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.tensor.codec.CodecKind;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.KryoSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Uses the Kryo that Spark creates. */
class TensorSerializerTest {
  private static Kryo kryo(String... settings) {
    SparkConf conf = new SparkConf(false);
    Tensors.SETTINGS.forEach(conf::set);
    for (int i = 0; i < settings.length; i += 2) {
      conf.set(settings[i], settings[i + 1]);
    }
    return new KryoSerializer(conf).newKryo();
  }

  /** Serializes through a stream with buffers smaller than the tensor. */
  private static Object throughStream(Kryo kryo, Object value) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (Output output = new Output(bytes, 100)) {
      kryo.writeClassAndObject(output, value);
    }
    return kryo.readClassAndObject(new Input(new ByteArrayInputStream(bytes.toByteArray()), 100));
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void everyTensorComesBackThroughAStream(String referenceTracking) {
    Kryo kryo = kryo("spark.kryo.referenceTracking", referenceTracking);
    for (int seed = 0; seed < 100; seed++) {
      Tensor tensor = Tensors.varied(seed);
      Tensor read = (Tensor) throughStream(kryo, tensor);
      assertThat(Tensors.text(read)).isEqualTo(Tensors.text(tensor));
      if (tensor.type().rank() > 1) {
        assertThat(read.buffer().overlaps(tensor.buffer())).isFalse();
        read.close();
        assertThatThrownBy(read::buffer).isInstanceOf(IllegalStateException.class);
      }
    }
  }

  @Test
  void theEmptyTensorIsTheSharedOne() {
    for (DataType dtype : DataType.values()) {
      assertThat(throughStream(kryo(), Tensor.empty(dtype))).isSameAs(Tensor.empty(dtype));
      assertThat(throughRecord(kryo(), CodecKind.ZSTD, Tensor.empty(dtype)))
          .isSameAs(Tensor.empty(dtype));
    }
  }

  @Test
  void typesAreShared() {
    TensorType type = TensorType.of(DataType.INT16, 3, 1L << 40);
    assertThat(throughStream(kryo(), type)).isSameAs(TensorType.of(DataType.INT16, 3, 1L << 40));
  }

  @Test
  void classesAreRegistered() {
    Kryo kryo = kryo("spark.kryo.registrationRequired", "true");
    assertThat(throughStream(kryo, DataType.FLOAT16)).isEqualTo(DataType.FLOAT16);
    assertThat(throughStream(kryo, TensorType.of(DataType.INT8))).hasToString("int8[]");
    Tensors.assertCounting((Tensor) throughStream(kryo, Tensors.counting(3, 5)), 3, 5);
  }

  @Test
  void aClosedTensorCannotBeWritten() {
    Tensor tensor = Tensors.counting(0, 9);
    tensor.close();
    assertThatThrownBy(() -> throughStream(kryo(), tensor)).hasMessageContaining("float32[9]");
    assertThatThrownBy(() -> throughRecord(kryo(), CodecKind.NONE, tensor))
        .hasMessageContaining("float32[9]");
  }

  /** Writes a record, reads it, and then overwrites its memory. */
  private static Object throughRecord(Kryo kryo, CodecKind codec, Object value) {
    ByteBuffer memory = record(kryo, codec, value);
    RecordInput input = new RecordInput();
    input.open(Memory.addressOf(memory), memory.remaining());
    Object read = kryo.readClassAndObject(input);
    Memory.setMemory(Memory.addressOf(memory), memory.remaining(), (byte) 0x77);
    return read;
  }

  private static ByteBuffer record(Kryo kryo, CodecKind codec, Object value) {
    RecordOutput record = new RecordOutput(codec);
    record.reset();
    kryo.writeClassAndObject(record, value);
    ByteBuffer memory = ByteBuffer.allocateDirect((int) record.bound());
    return memory.limit((int) record.place(Memory.addressOf(memory)));
  }

  @ParameterizedTest
  @EnumSource(names = {"NONE", "ZSTD"})
  void recordsComeBackAndCanBeKept(CodecKind codec) {
    Kryo kryo = kryo();
    List<Object> kept = new ArrayList<>();
    for (int seed = 0; seed < 100; seed++) {
      List<Object> nested = new ArrayList<>(List.of("before", Tensors.varied(seed), seed, seed));
      nested.add(Tensors.counting(seed, 300, 11));
      nested.add("x".repeat(50 * seed));
      kept.add(throughRecord(kryo, codec, nested));
    }
    for (int seed = 0; seed < 100; seed++) {
      List<?> nested = (List<?>) kept.get(seed);
      assertThat(Tensors.text((Tensor) nested.get(1)))
          .isEqualTo(Tensors.text(Tensors.varied(seed)));
      assertThat(nested.get(2)).isEqualTo(seed);
      Tensors.assertCounting((Tensor) nested.get(4), seed, 300, 11);
      assertThat(nested.get(5)).isEqualTo("x".repeat(50 * seed));
    }
  }

  @ParameterizedTest
  @CsvSource({"BFLOAT16, 2", "FLOAT8_E4M3, 1", "FLOAT8_E5M2, 1"})
  void lossyCodecsCountTheirBytesAndLeaveOtherTypes(CodecKind codec, int width) {
    Tensor ones = Tensor.allocate(TensorType.of(DataType.FLOAT32, 1000));
    for (int i = 0; i < 1000; i++) {
      Memory.putFloat(ones.address() + 4L * i, 1);
    }
    assertThat(record(kryo(), codec, ones).remaining()).isBetween(1000 * width, 1000 * width + 40);
    Tensor read = (Tensor) throughRecord(kryo(), codec, ones);
    assertThat(Tensors.text(read)).isEqualTo(Tensors.text(ones));
    Tensor integers = Tensors.varied(2);
    assertThat(integers.type().dtype()).isEqualTo(DataType.INT32);
    assertThat(Tensors.text((Tensor) throughRecord(kryo(), codec, integers)))
        .isEqualTo(Tensors.text(integers));
  }

  @ParameterizedTest
  @EnumSource
  void aRecordThatIsCutOffIsAnError(CodecKind codec) {
    Kryo kryo = kryo();
    ByteBuffer memory = record(kryo, codec, Tensors.counting(1, 70));
    for (int bytes = 0; bytes < memory.remaining(); bytes++) {
      RecordInput input = new RecordInput();
      input.open(Memory.addressOf(memory), bytes);
      assertThatThrownBy(() -> kryo.readClassAndObject(input)).isInstanceOf(KryoException.class);
      kryo.reset();
    }
    Reference.reachabilityFence(memory);
  }
}
