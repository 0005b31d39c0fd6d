package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.LocalPeers.RingLink;
import io.weft.collectives.host.MessageChannel.ByteLink.Traffic;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A ring works when its counts of bytes wrap around. */
class RingLinkTest {
  private static final int RING = 1024;
  private static final int MAX = 700;

  private final PrivateBlocks blocks = new PrivateBlocks(2, new BufferSizes(128, 128, RING));
  private final ByteBuffer out = ByteBuffer.allocateDirect(MAX);
  private final ByteBuffer in = ByteBuffer.allocateDirect(MAX);

  private void startAt(int count) {
    ControlBlock sender = blocks.block(0);
    ControlBlock receiver = blocks.block(1);
    Memory.putIntRelease(sender.written(Traffic.PAIRS, 1), count);
    Memory.putIntRelease(receiver.consumed(Traffic.PAIRS, 0), count);
  }

  /**
   * Counts from zero, through 2^31, and through 2^32; starts are not multiples of the ring's
   * length.
   */
  @ParameterizedTest
  @ValueSource(ints = {0, Integer.MAX_VALUE - 5000, -5001})
  void bytesKeepTheirOrderThroughTheWrap(int start) {
    startAt(start);
    RingLink sender = blocks.link(0, 1);
    RingLink receiver = blocks.link(1, 0);
    Random random = new Random(start);
    long sent = 0;
    long taken = 0;
    for (int round = 0; round < 100; round++) {
      sent += send(sender, sent, 1 + random.nextInt(MAX));
      assertThat(sent - taken).isBetween(0L, (long) RING);
      taken += take(receiver, taken, 1 + random.nextInt(MAX));
    }
    for (int round = 0; round < RING; round++) {
      taken += take(receiver, taken, MAX);
    }
    assertThat(taken).isEqualTo(sent).isGreaterThan(20_000);
    assertThat(receiver.take(Memory.addressOf(in), MAX)).as("nothing is left").isZero();
    assertThat(Memory.getIntAcquire(blocks.block(0).written(Traffic.PAIRS, 1)))
        .isEqualTo(start + (int) sent);
  }

  private int send(RingLink sender, long before, int bytes) {
    for (int i = 0; i < bytes; i++) {
      out.put(i, (byte) ((before + i) * 31 >> 3));
    }
    int length = sender.put(Memory.addressOf(out), bytes);
    assertThat(sender.push()).isTrue();
    return length;
  }

  private int take(RingLink receiver, long before, int bytes) {
    int length = receiver.take(Memory.addressOf(in), bytes);
    for (int i = 0; i < length; i++) {
      assertThat(in.get(i)).as("byte " + (before + i)).isEqualTo((byte) ((before + i) * 31 >> 3));
    }
    return length;
  }

  @ParameterizedTest
  @ValueSource(ints = {0, Integer.MAX_VALUE - 300, -301})
  void fullRingTakesNothingMore(int start) {
    startAt(start);
    RingLink sender = blocks.link(0, 1);
    assertThat(sender.put(Memory.addressOf(out), MAX)).isEqualTo(MAX);
    assertThat(sender.put(Memory.addressOf(out), MAX)).isEqualTo(RING - MAX);
    assertThat(sender.put(Memory.addressOf(out), MAX)).isZero();
    assertThat(blocks.link(1, 0).take(Memory.addressOf(in), MAX)).as("not pushed").isZero();
  }
}
