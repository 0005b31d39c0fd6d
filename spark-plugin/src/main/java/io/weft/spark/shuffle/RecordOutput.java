package io.weft.spark.shuffle;

import com.esotericsoftware.kryo.io.Output;
import io.weft.memory.Memory;
import io.weft.spark.shuffle.TensorSerializer.TensorTypeSerializer;
import io.weft.tensor.Tensor;
import io.weft.tensor.codec.CodecKind;
import io.weft.tensor.codec.TensorEncoder;
import java.util.ArrayList;
import java.util.List;

/**
 * Collects one record: the bytes that Kryo writes, and references to the tensors between them.
 * {@link #place} copies everything to its destination once, when the length is known. The tensors
 * must stay open and unchanged until then. Not thread-safe.
 */
final class RecordOutput extends Output {
  private static final int FIRST_BYTES = 4 << 10;
  private static final int KEPT_BYTES = 1 << 20;

  /** A tensor, inserted after a number of bytes that Kryo wrote. */
  private record Insertion(int behind, Tensor tensor, TensorEncoder encoder) {
    /** Maximum bytes. The length of an encoded tensor precedes it. */
    long bound() {
      return encoder == null ? tensor.type().bytes() : Long.BYTES + encoder.bound();
    }
  }

  private final CodecKind codec;
  private final List<Insertion> insertions = new ArrayList<>();

  /**
   * @param codec encodes the tensors of its types
   */
  public RecordOutput(CodecKind codec) {
    super(FIRST_BYTES, -1);
    this.codec = codec;
  }

  /** Empties the output for the next record. */
  public void reset() {
    insertions.clear();
    if (capacity > KEPT_BYTES) {
      setBuffer(new byte[FIRST_BYTES], -1);
    }
    clear();
  }

  void writeTensor(Tensor tensor) {
    CodecKind kind = codec.orNone(tensor.type().dtype());
    if (kind == CodecKind.NONE || tensor.type().elements() == 0) {
      writeByte(TensorSerializer.PLAIN);
      TensorTypeSerializer.write(this, tensor.type());
      tensor.buffer(); // Throws here if the tensor is closed.
      insertions.add(new Insertion(position, tensor, null));
    } else {
      writeByte(TensorSerializer.ENCODED);
      insertions.add(new Insertion(position, tensor, kind.codec().encoder(tensor)));
    }
  }

  /** Maximum bytes of the record. */
  public long bound() {
    long bound = position;
    for (Insertion insertion : insertions) {
      bound = Math.addExact(bound, insertion.bound());
    }
    return bound;
  }

  /**
   * Copies the record to an address with room for {@link #bound} bytes.
   *
   * @return bytes written
   */
  public long place(long address) {
    long at = address;
    int taken = 0;
    for (Insertion insertion : insertions) {
      at = placeOwn(taken, insertion.behind(), at);
      taken = insertion.behind();
      at = insertion.encoder() == null ? plain(insertion.tensor(), at) : encoded(insertion, at);
    }
    return placeOwn(taken, position, at) - address;
  }

  private long placeOwn(int from, int to, long at) {
    Memory.copyFrom(buffer, Memory.BYTE_ARRAY + from, at, to - from);
    return at + to - from;
  }

  private static long plain(Tensor tensor, long at) {
    Memory.copy(tensor.address(), at, tensor.type().bytes());
    return at + tensor.type().bytes();
  }

  private static long encoded(Insertion insertion, long at) {
    TensorEncoder encoder = insertion.encoder();
    long start = at + Long.BYTES;
    long end = start + encoder.bound();
    long next = start;
    while (encoder.hasNext()) {
      next += encoder.next(next, end - next);
    }
    Memory.putLong(at, next - start);
    return next;
  }
}
