package io.weft.spark.shuffle;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.Serializer;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.tensor.codec.CorruptTensorException;
import java.lang.ref.Reference;

/**
 * Serializes a tensor as its type and its bytes. A {@link RecordOutput} with a codec encodes the
 * tensor. Streams copy the bytes in small pieces; a {@link RecordOutput} and a {@link RecordInput}
 * copy them once, from memory to memory.
 *
 * <p>A deserialized tensor owns its memory, which {@link Tensor#close} or the garbage collector
 * frees. A tensor of shape [0] becomes {@link Tensor#empty}. Like Kryo, it serves one thread at a
 * time.
 */
public final class TensorSerializer extends Serializer<Tensor> {
  static final byte PLAIN = 0;
  static final byte ENCODED = 1;

  private static final int PIECE_BYTES = 8 << 10;

  private final byte[] piece = new byte[PIECE_BYTES];

  public TensorSerializer() {
    super(false, true);
  }

  @Override
  public void write(Kryo kryo, Output output, Tensor tensor) {
    if (output instanceof RecordOutput record) {
      record.writeTensor(tensor);
      return;
    }
    output.writeByte(PLAIN);
    TensorTypeSerializer.write(output, tensor.type());
    try {
      writePieces(output, tensor.address(), tensor.type().bytes());
    } finally {
      // Without this, the garbage collector may free the memory during the loop.
      Reference.reachabilityFence(tensor);
    }
  }

  private void writePieces(Output output, long address, long bytes) {
    for (long done = 0; done < bytes; done += PIECE_BYTES) {
      int part = (int) Math.min(PIECE_BYTES, bytes - done);
      Memory.copyTo(address + done, piece, Memory.BYTE_ARRAY, part);
      output.writeBytes(piece, 0, part);
    }
  }

  @Override
  public Tensor read(Kryo kryo, Input input, Class<Tensor> wanted) {
    byte form = input.readByte();
    RecordInput record = input instanceof RecordInput ours ? ours : null;
    if (form == PLAIN) {
      TensorType type = TensorTypeSerializer.read(input);
      return record == null ? readPieces(input, type) : record.readTensor(type);
    }
    if (form != ENCODED || record == null) {
      throw new KryoException("not a tensor: its form is " + form);
    }
    try {
      return record.readEncoded();
    } catch (CorruptTensorException e) {
      throw new KryoException(e.getMessage(), e);
    }
  }

  private Tensor readPieces(Input input, TensorType type) {
    if (type.rank() == 1 && type.elements() == 0) {
      return Tensor.empty(type.dtype());
    }
    Tensor tensor = Tensor.allocate(type);
    try {
      for (long done = 0; done < type.bytes(); done += PIECE_BYTES) {
        int part = (int) Math.min(PIECE_BYTES, type.bytes() - done);
        input.readBytes(piece, 0, part);
        Memory.copyFrom(piece, Memory.BYTE_ARRAY, tensor.address() + done, part);
      }
      return tensor;
    } catch (KryoException e) {
      tensor.close();
      throw e;
    }
  }

  /**
   * Serializes a tensor type as the number of the element type, the rank and the sizes. Reading
   * returns the shared object.
   */
  public static final class TensorTypeSerializer extends Serializer<TensorType> {
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
      if (BY_CODE[code] == null || rank > TensorType.MAX_DIMENSIONS) {
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
}
