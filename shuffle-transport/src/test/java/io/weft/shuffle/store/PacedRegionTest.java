package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** A region writes every byte once, for any number of bytes that its target accepts. */
class PacedRegionTest {
  /** A region that returns an array in pieces. */
  private static final class ArrayRegion extends PacedRegion {
    private final byte[] content;
    private final int pieceBytes;
    private int turns;

    ArrayRegion(byte[] content, int pieceBytes) {
      super(content.length);
      this.content = content;
      this.pieceBytes = pieceBytes;
    }

    @Override
    protected ByteBuffer from(long position) {
      int length = (int) Math.min(pieceBytes, content.length - position);
      return ByteBuffer.wrap(content, (int) position, length);
    }

    @Override
    protected void progressed() {
      turns++;
    }

    @Override
    protected void deallocate() {
      // An array needs no release.
    }
  }

  /** A channel that accepts a few bytes of each write, and sometimes none. */
  private static final class SlowChannel implements WritableByteChannel {
    private final ByteArrayOutputStream taken = new ByteArrayOutputStream();
    private final SplittableRandom random = new SplittableRandom(1);

    @Override
    public int write(ByteBuffer from) {
      int count = Math.min(from.remaining(), random.nextInt(1500));
      byte[] bytes = new byte[count];
      from.get(bytes);
      taken.writeBytes(bytes);
      return count;
    }

    @Override
    public boolean isOpen() {
      return true;
    }

    @Override
    public void close() {
      // Nothing to close.
    }
  }

  private static byte[] content(int length) {
    byte[] content = new byte[length];
    new java.util.Random(2).nextBytes(content);
    return content;
  }

  @Test
  void aSlowTargetGetsEveryByteOnce() throws IOException {
    byte[] content = content(300_001);
    ArrayRegion region = new ArrayRegion(content, 1000);
    SlowChannel target = new SlowChannel();
    int calls = 0;
    while (region.transferred() < region.count()) {
      long before = region.transferred();
      long written = region.transferTo(target, before);
      assertThat(region.transferred()).isEqualTo(before + written);
      calls++;
    }
    assertThat(target.taken.toByteArray()).isEqualTo(content);
    assertThat(region.transferTo(target, content.length)).isZero();
    assertThat(region.turns).isPositive().isLessThanOrEqualTo(calls);
  }

  @Test
  void aCallEndsEvenIfTheTargetAcceptsEverything() throws IOException {
    ArrayRegion region = new ArrayRegion(content(3 << 20), 1000);
    WritableByteChannel greedy =
        new WritableByteChannel() {
          @Override
          public int write(ByteBuffer from) {
            int count = from.remaining();
            from.position(from.limit());
            return count;
          }

          @Override
          public boolean isOpen() {
            return true;
          }

          @Override
          public void close() {
            // Nothing to close.
          }
        };
    assertThat(region.transferTo(greedy, 0))
        .isBetween(PacedRegion.TURN_BYTES, PacedRegion.TURN_BYTES + 1000);
    assertThat(region.turns).isEqualTo(1);
  }

  @Test
  void aWrongPositionIsRefused() throws IOException {
    ArrayRegion region = new ArrayRegion(content(100), 10);
    assertThatThrownBy(() -> region.transferTo(new SlowChannel(), 7))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("position 7");
    assertThat(region.transferred()).isZero();
  }
}
