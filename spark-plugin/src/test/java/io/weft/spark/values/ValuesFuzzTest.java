package io.weft.spark.values;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.fuzz.Fuzz;
import io.weft.memory.Memory;
import io.weft.spark.values.ValueReader.CorruptValueException;
import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/** Changed bytes give other values or the one expected exception. A failure names its seed. */
class ValuesFuzzTest {
  private static final int BYTES = 1 << 20;

  @Property(tries = 20_000, shrinking = ShrinkingMode.OFF)
  void changedBytesAreRefusedOrRead(@ForAll long seed) {
    Fuzz.round(seed, ValuesFuzzTest::round);
  }

  @Test
  @EnabledIfSystemProperty(named = Fuzz.MINUTES, matches = "\\d+")
  @Timeout(value = 3, unit = TimeUnit.HOURS)
  void changedBytesAreRefusedOrReadForMinutes() {
    System.out.println(Fuzz.forMinutes(ValuesFuzzTest::round) + " records");
  }

  private static void round(SplittableRandom random) {
    byte[] bytes = Fuzz.mangled(record(random), random);
    // No byte follows: a reader beyond the end would leave the allocation.
    long memory = Memory.allocate(bytes.length);
    try {
      Memory.copyFrom(bytes, Memory.BYTE_ARRAY, memory, bytes.length);
      ValueReader reader = new ValueReader(schema -> ValueSamples.SCHEMA);
      reader.open(memory, memory + bytes.length);
      while (reader.hasNext()) {
        assertThat(reader.next()).isNotNull();
      }
    } catch (CorruptValueException e) {
      assertThat(e.getMessage()).isNotBlank();
    } finally {
      Memory.free(memory);
    }
  }

  private static byte[] record(SplittableRandom random) {
    long memory = Memory.allocate(BYTES);
    try {
      ValueWriter writer = new ValueWriter(schema -> ByteBuffer.wrap(new byte[40]));
      Object key = ValueSamples.any(random, 0);
      long end = writer.write(memory, memory + BYTES, 0, key, ValueSamples.any(random, 2));
      byte[] bytes = new byte[(int) (end - memory)];
      Memory.copyTo(memory, bytes, Memory.BYTE_ARRAY, bytes.length);
      return bytes;
    } finally {
      Memory.free(memory);
    }
  }
}
