package io.weft.spark.kryo;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.Serializer;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import io.weft.collectives.buffer.DataType;
import io.weft.tensor.TensorType;

/**
 * Serializes a tensor type as the number of the element type, the rank and the sizes. Reading
 * returns the shared object.
 */
public final class TensorTypeSerializer extends Serializer<TensorType> {
  private static final DataType[] BY_CODE = byCode();

  public TensorTypeSerializer() {
    super(false, true);
  }

  private static DataType[] byCode() {
    DataType[] types = new DataType[256];
    for (DataType type : DataType.values()) {
      types[type.code()] = type;
    }
    return types;
  }

  @Override
  public void write(Kryo kryo, Output output, TensorType type) {
    write(output, type);
  }

  @Override
  public TensorType read(Kryo kryo, Input input, Class<TensorType> wanted) {
    return read(input);
  }

  static void write(Output output, TensorType type) {
    output.writeByte(type.dtype().code());
    output.writeByte(type.rank());
    for (int i = 0; i < type.rank(); i++) {
      output.writeVarLong(type.dimension(i), true);
    }
  }

  static TensorType read(Input input) {
    int code = input.readByte() & 0xff;
    int rank = input.readByte() & 0xff;
    if (BY_CODE[code] == null || rank > TensorType.MOST_DIMENSIONS) {
      throw new KryoException(
          "not a tensor type: element type number " + code + ", " + rank + " dimensions");
    }
    long[] shape = new long[rank];
    for (int i = 0; i < rank; i++) {
      shape[i] = input.readVarLong(true);
    }
    try {
      return TensorType.of(BY_CODE[code], shape);
    } catch (IllegalArgumentException e) {
      throw new KryoException("not a tensor type: " + e.getMessage(), e);
    }
  }
}
