package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class MemoryTest {
  private final ByteBuffer buffer =
      ByteBuffer.allocateDirect(4 << 20).order(ByteOrder.nativeOrder());
  private final long address = Memory.addressOf(buffer);

  @Test
  void valuesAreInNativeOrderAtAnyAddress() {
    Memory.putByte(address, (byte) -3);
    Memory.putShort(address + 1, (short) -30_000);
    Memory.putInt(address + 3, 0xCAFEBABE);
    Memory.putLong(address + 7, 0x0123_4567_89AB_CDEFL);
    Memory.putFloat(address + 15, 1.5f);
    Memory.putDouble(address + 19, -2.25);

    assertThat(buffer.get(0)).isEqualTo((byte) -3);
    assertThat(buffer.getShort(1)).isEqualTo((short) -30_000);
    assertThat(buffer.getInt(3)).isEqualTo(0xCAFEBABE);
    assertThat(buffer.getLong(7)).isEqualTo(0x0123_4567_89AB_CDEFL);
    assertThat(buffer.getFloat(15)).isEqualTo(1.5f);
    assertThat(buffer.getDouble(19)).isEqualTo(-2.25);
    assertThat(Memory.getByte(address)).isEqualTo((byte) -3);
    assertThat(Memory.getShort(address + 1)).isEqualTo((short) -30_000);
    assertThat(Memory.getInt(address + 3)).isEqualTo(0xCAFEBABE);
    assertThat(Memory.getLong(address + 7)).isEqualTo(0x0123_4567_89AB_CDEFL);
    assertThat(Memory.getFloat(address + 15)).isEqualTo(1.5f);
    assertThat(Memory.getDouble(address + 19)).isEqualTo(-2.25);
  }

  @Test
  void arraysOfEveryWidthGoInAndOut() {
    roundTrip(new byte[] {1, -2, 3}, new byte[3], Memory.BYTE_ARRAY, 3);
    roundTrip(new short[] {1, -2, 3}, new short[3], Memory.SHORT_ARRAY, 6);
    roundTrip(new int[] {1, -2, 3}, new int[3], Memory.INT_ARRAY, 12);
    roundTrip(new long[] {1, -2, 3}, new long[3], Memory.LONG_ARRAY, 24);
    roundTrip(new float[] {1, -2, 3}, new float[3], Memory.FLOAT_ARRAY, 12);
    roundTrip(new double[] {1, -2, 3}, new double[3], Memory.DOUBLE_ARRAY, 24);
  }

  private void roundTrip(Object from, Object to, long offset, long bytes) {
    Memory.setMemory(address, bytes, (byte) 0);
    Memory.copyFrom(from, offset, address, bytes);
    Memory.copyTo(address, to, offset, bytes);
    assertThat(to).isEqualTo(from);
  }

  @Test
  void setMemoryFillsExactlyTheRange() {
    Memory.setMemory(address, buffer.capacity(), (byte) 1);
    Memory.setMemory(address + 5, (2 << 20) + 7, (byte) 9);
    for (int i = 0; i < buffer.capacity(); i++) {
      int expected = i >= 5 && i < 5 + (2 << 20) + 7 ? 9 : 1;
      if (buffer.get(i) != expected) {
        throw new AssertionError("byte " + i + " is " + buffer.get(i) + ", not " + expected);
      }
    }
  }

  /** Each round's payload is written plainly and published by a release, in both directions. */
  @Test
  void releaseAndAcquireCarryWhatWasWrittenBefore() throws Exception {
    int rounds = 20_000;
    long payload = address + 4096;
    CompletableFuture<Void> echo =
        CompletableFuture.runAsync(
            () -> {
              for (int round = 1; round <= rounds; round++) {
                awaitValue(address, 2L * round - 1);
                Memory.putLong(payload, Memory.getLong(payload) + 1);
                Memory.putLongRelease(address, 2L * round);
              }
            });
    for (int round = 1; round <= rounds; round++) {
      Memory.putLong(payload, round * 1000L);
      Memory.putLongRelease(address, 2L * round - 1);
      awaitValue(address, 2L * round);
      assertThat(Memory.getLong(payload)).isEqualTo(round * 1000L + 1);
    }
    echo.get(1, TimeUnit.MINUTES);
  }

  private static void awaitValue(long address, long value) {
    long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    while (Memory.getLongAcquire(address) != value) {
      if (System.nanoTime() > end) {
        throw new AssertionError("waited a minute for " + value);
      }
      Thread.yield();
    }
  }

  @Test
  void aHeapBufferHasNoAddress() {
    assertThatThrownBy(() -> Memory.addressOf(ByteBuffer.allocate(8)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("heap buffer");
  }
}
