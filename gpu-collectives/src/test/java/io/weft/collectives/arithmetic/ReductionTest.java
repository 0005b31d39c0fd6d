package io.weft.collectives.arithmetic;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.Values;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class ReductionTest {
  /**
   * Tests any type and reduction, counts around the size of a tile, and every source also as a
   * target.
   */
  @Property(tries = 300)
  void combinesAllSourcesIntoAllTargets(
      @ForAll DataType type,
      @ForAll ReduceOp op,
      @ForAll @IntRange(min = 1, max = 8) int sources,
      @ForAll @IntRange(min = 0, max = 9000) int count) {
    List<TypedBuffer> buffers = new ArrayList<>();
    long[] addresses = new long[sources];
    for (int source = 0; source < sources; source++) {
      TypedBuffer buffer = TypedBuffer.wrap(ByteBuffer.allocateDirect(count * type.bytes()), type);
      Values.fill(buffer, source);
      buffers.add(buffer);
      addresses[source] = buffer.address();
    }
    int divisor = op == ReduceOp.AVERAGE ? sources : 1;
    Reduction.of(type, op).run(addresses, sources, addresses, sources, count, divisor);
    for (TypedBuffer buffer : buffers) {
      Values.check(op + " of " + type, buffer, i -> Values.reduced(type, op, sources, i));
    }
  }

  @Property(tries = 100)
  void conversionIsThatOfSingleValues(@ForAll short[] values, @ForAll boolean brain) {
    DataType type = brain ? DataType.BFLOAT16 : DataType.FLOAT16;
    TypedBuffer half = TypedBuffer.wrap(ByteBuffer.allocateDirect(2 * values.length), type);
    TypedBuffer bits = half.as(DataType.INT16);
    for (int i = 0; i < values.length; i++) {
      Values.put(bits, i, values[i]);
    }
    TypedBuffer wide =
        TypedBuffer.wrap(ByteBuffer.allocateDirect(4 * values.length), DataType.FLOAT32);
    Conversion.widen(type, half.address(), wide.address(), values.length);
    Values.check("widened", wide, i -> Values.get(half, i));
    TypedBuffer back = TypedBuffer.wrap(ByteBuffer.allocateDirect(2 * values.length), type);
    Conversion.narrow(type, wide.address(), back.address(), values.length, 1);
    for (int i = 0; i < values.length; i++) {
      assertThat(Double.valueOf(Values.get(back, i)))
          .isEqualTo(Double.valueOf(Values.get(half, i)));
    }
  }
}
