package io.weft.device.cuda;

import static io.weft.device.cuda.KernelTable.ints;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.lifecycle.BeforeContainer;

/**
 * The kernels of multicast.cu on the host, as in {@link HostKernelsTest}. A multicast address is
 * here the memory of one rank, because each store reaches all ranks at the same offset.
 */
class HostMulticastKernelsTest {
  private static final byte GARBAGE = (byte) 0xab;
  private static final int SLOT_BYTES = 32;
  private static final int SIGNAL_WORDS = 16 + 2 + 16;
  private static final int FAILED_WORD = 17;
  private static final int ARGUMENT_BYTES = 40;

  @BeforeContainer
  static void needsACompiler() {
    assumeTrue(KernelRun.whyNot().isEmpty(), KernelRun::whyNot);
  }

  /**
   * Blocks and their ends arrive at all alignments of source and target, and nothing is written
   * beside them. After a failed barrier nothing is written.
   */
  @Property(tries = 40, shrinking = ShrinkingMode.OFF)
  void blocksOfAllRanksArrive(@ForAll long seed) {
    Random random = new Random(seed);
    int ranks = 1 + random.nextInt(16);
    int bytes = random.nextBoolean() ? random.nextInt(50) : random.nextInt(5000);
    int before = random.nextInt(40);
    boolean hasFailed = random.nextInt(5) == 0;
    KernelRun run = new KernelRun();
    int[] words = new int[SIGNAL_WORDS];
    words[FAILED_WORD] = hasFailed ? 1 : 0;
    int signals = run.buffer(ints(words));
    byte[] expected = new byte[before + ranks * bytes + random.nextInt(20)];
    Arrays.fill(expected, GARBAGE);
    int memory = run.buffer(expected.length, GARBAGE & 0xff);
    int slots = run.buffer((long) ranks * SLOT_BYTES, GARBAGE & 0xff);
    for (int rank = 0; rank < ranks; rank++) {
      byte[] source = new byte[random.nextInt(20) + bytes];
      random.nextBytes(source);
      int at = before + rank * bytes;
      run.forEach("weft_multicast_write", bytes / 16)
          .address(memory, at)
          .address(slots, (long) rank * SLOT_BYTES)
          .address(run.buffer(source), source.length - bytes)
          .longs(bytes)
          .address(signals)
          .end(ARGUMENT_BYTES);
      if (!hasFailed) {
        System.arraycopy(source, source.length - bytes, expected, at, bytes);
      }
    }
    int half = random.nextInt(ranks + 1);
    int[] starts = {0, half, ranks};
    for (int i = 0; i < 2; i++) {
      int blocks = starts[i + 1] - starts[i];
      run.forEach("weft_multicast_ends", (long) blocks * SLOT_BYTES)
          .address(slots)
          .address(memory, before + (long) starts[i] * bytes)
          .longs(bytes)
          .address(signals)
          .ints(starts[i], blocks)
          .end(ARGUMENT_BYTES);
    }
    assertThat(run.run().get(memory).slice()).isEqualTo(ByteBuffer.wrap(expected));
  }
}
