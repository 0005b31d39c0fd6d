package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.FailureCodec;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.bootstrap.FrameChannel;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.MessageChannel.ByteLink;
import io.weft.collectives.host.MessageChannel.MessageChecksum;
import io.weft.device.Deadline;
import io.weft.fuzz.Fuzz;
import io.weft.memory.Memory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Sends random messages of ranks on other hosts, to a rank's agent and before their data. Each is
 * accepted as sent or refused with the intended exception, and changes nothing else.
 */
class MessageFuzzTest {
  private static final int RANKS = 4;
  private static final WaitStatus STATUS = new WaitStatus(2, 7, new Signature(0x10203, -1, 99));
  private static final List<String> SURELY = List.of("message", "waits for rank", "damaged");

  @Property(tries = 20_000, shrinking = ShrinkingMode.OFF)
  void everyMessageIsRefusedOrValid(@ForAll long seed) {
    Fuzz.round(seed, MessageFuzzTest::round);
  }

  @Test
  @EnabledIfSystemProperty(named = Fuzz.MINUTES, matches = "\\d+")
  @Timeout(value = 3, unit = TimeUnit.HOURS)
  void everyMessageIsRefusedOrValidForMinutes() {
    System.out.println(Fuzz.forMinutes(MessageFuzzTest::round) + " messages");
  }

  private static void round(SplittableRandom random) {
    switch (random.nextInt(3)) {
      case 0 -> control(random);
      case 1 -> frame(random);
      default -> summed(random);
    }
  }

  private static void control(SplittableRandom random) {
    byte[] message = Fuzz.mangled(sound(random), random);
    try (SocketChannel socket = SocketChannel.open()) {
      ControlPeer peer = new ControlPeer(1, RANKS, new FrameChannel(socket, ControlPeer.MAX_BYTES));
      try {
        Optional<CollectiveException> failure = peer.receive(message, Optional.of(STATUS));
        failure.ifPresent(cause -> assertThat(cause.kind()).isNotNull());
        peer.waiting().ifPresent(status -> assertThat(status.rank()).isBetween(0, RANKS - 1));
        assertThat(peer.state() == ControlPeer.State.FAILED).isEqualTo(failure.isPresent());
      } catch (IOException e) {
        assertThat(e).hasMessageContaining("rank 1");
        assertThat(SURELY).anyMatch(e.getMessage()::contains);
        assertThat(peer.state()).isEqualTo(ControlPeer.State.OPEN);
        assertThat(peer.waiting()).isEmpty();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static byte[] sound(SplittableRandom random) {
    byte kind = (byte) (1 + random.nextInt(4));
    ByteBuffer out = ByteBuffer.allocate(ControlPeer.MAX_BYTES).put(kind);
    switch (kind) {
      case 1 -> {
        Kind[] kinds = Kind.values();
        CollectiveException cause =
            new CollectiveException(
                kinds[random.nextInt(kinds.length)],
                List.of(random.nextInt(RANKS), 3),
                "x".repeat(random.nextInt(200)));
        out.put(FailureCodec.encode(cause, 4096));
      }
      case 3 -> out.putLong(random.nextLong());
      case 4 -> {
        out.putLong(random.nextLong());
        if (random.nextBoolean()) {
          out.putInt(random.nextInt(RANKS)).putLong(5).putInt(1).putInt(-1).putLong(8);
        }
      }
      default -> {}
    }
    return Arrays.copyOf(out.array(), out.position());
  }

  @Test
  void aMessageThatIsTooShortNamesItsRank() throws IOException {
    try (SocketChannel socket = SocketChannel.open()) {
      ControlPeer peer = new ControlPeer(1, RANKS, new FrameChannel(socket, ControlPeer.MAX_BYTES));
      for (byte[] message : List.of(new byte[0], new byte[] {3, 0}, new byte[] {4}, new byte[38])) {
        assertThatThrownBy(() -> peer.receive(message, Optional.empty()))
            .isInstanceOf(IOException.class)
            .hasMessageContaining("rank 1 sent " + message.length + " bytes");
      }
      ByteBuffer stranger = ByteBuffer.allocate(37).put((byte) 4).putLong(1).putInt(RANKS);
      assertThatThrownBy(() -> peer.receive(stranger.array(), Optional.empty()))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("rank 1 says that it waits for rank " + RANKS + " of " + RANKS);
    }
  }

  /** A link with prepared incoming bytes, to which the test sends nothing. */
  private static final class Prepared implements ByteLink {
    private final byte[] content;
    private final boolean summed;
    private int taken;

    Prepared(byte[] content, boolean summed) {
      this.content = content;
      this.summed = summed;
    }

    @Override
    public boolean leavesHost() {
      return summed;
    }

    @Override
    public int put(long address, long bytes) {
      throw new AssertionError("nothing is sent here");
    }

    @Override
    public boolean push() {
      return true;
    }

    @Override
    public int take(long address, long bytes) {
      int count = (int) Math.min(bytes, Math.min(content.length - taken, 13));
      for (int i = 0; i < count; i++) {
        Memory.putByte(address + i, content[taken + i]);
      }
      taken += count;
      return count;
    }
  }

  /** Sends a frame with bytes after it. The bytes arrive only after the expected frame. */
  private static void frame(SplittableRandom random) {
    Signature signature = new Signature(random.nextInt(1 << 24), random.nextInt(3) - 1, 64);
    FrameHeader frame = new FrameHeader();
    frame.write(signature, 5, 0, 0, 64);
    byte[] sound = new byte[FrameHeader.BYTES];
    for (int i = 0; i < sound.length; i++) {
      sound[i] = Memory.getByte(frame.address() + i);
    }
    byte[] head = Arrays.copyOf(Fuzz.mangled(sound, random), FrameHeader.BYTES);
    byte[] content = Arrays.copyOf(head, FrameHeader.BYTES + 64);
    Arrays.fill(content, FrameHeader.BYTES, content.length, (byte) 7);
    ByteBuffer target = ByteBuffer.allocateDirect(64);
    PointToPoint messages = receiver(content, false);
    messages.receive(signature, 5, 1, Memory.addressOf(target), 64);
    boolean genuine = Arrays.equals(head, sound);
    try {
      while (!messages.isDone() && messages.progress()) {
        // Repeats until no byte moves.
      }
      assertThat(genuine).as("a frame was taken for another").isTrue();
      assertThat(messages.isDone()).isTrue();
      assertThat(target.get(63)).isEqualTo((byte) 7);
    } catch (CollectiveException e) {
      assertThat(genuine).as("%s", e.getMessage()).isFalse();
      assertThat(e.kind()).isEqualTo(Kind.MISMATCH);
      assertThat(e.ranks()).containsExactly(0, 1);
      assertThat(target.get(0)).as("nothing after a wrong frame is taken").isZero();
    }
  }

  /** Sends a message from another host, any part of which may have changed. */
  private static void summed(SplittableRandom random) {
    Signature signature = new Signature(random.nextInt(1 << 24), random.nextInt(3) - 1, 64);
    byte[] sound = withSums(signature, random.nextInt(65));
    int bytes = Math.max(0, sound.length - FrameHeader.BYTES - 2 * FrameHeader.SUM_BYTES);
    byte[] content = Fuzz.mangled(sound, random);
    ByteBuffer target = ByteBuffer.allocateDirect(64);
    PointToPoint messages = receiver(content, true);
    messages.receive(signature, 5, 1, Memory.addressOf(target), bytes);
    boolean genuine = Arrays.equals(Arrays.copyOf(content, sound.length), sound);
    try {
      while (!messages.isDone() && messages.progress()) {
        // Repeats until no byte moves.
      }
      assertThat(messages.isDone())
          .as("%d of %d bytes arrived", content.length, sound.length)
          .isEqualTo(genuine && content.length >= sound.length);
    } catch (CollectiveException e) {
      assertThat(genuine).as("%s", e.getMessage()).isFalse();
      assertThat(e.kind()).isEqualTo(Kind.IO);
      assertThat(e.ranks()).containsExactly(1);
    }
  }

  private static byte[] withSums(Signature signature, int bytes) {
    FrameHeader frame = new FrameHeader();
    frame.write(signature, 5, 0, 0, bytes);
    ByteBuffer body = ByteBuffer.allocateDirect(bytes);
    MessageChecksum sum = new MessageChecksum();
    frame.sum(sum.startWith(frame));
    sum.add(Memory.addressOf(body), bytes);
    ByteBuffer all = ByteBuffer.allocate(FrameHeader.BYTES + bytes + 2 * FrameHeader.SUM_BYTES);
    for (int i = 0; i < FrameHeader.BYTES; i++) {
      all.put(Memory.getByte(frame.address() + i));
    }
    all.order(ByteOrder.nativeOrder()).putInt(frame.sum()).put(body);
    if (bytes > 0) {
      all.putInt(sum.value());
    }
    return Arrays.copyOf(all.array(), all.position());
  }

  private static PointToPoint receiver(byte[] content, boolean summed) {
    Call call = new Call();
    call.start(new Signature(0, -1, 0), 0, Deadline.after(Duration.ofSeconds(60)));
    LocalPeers localPeers = new PrivateBlocks(2, new BufferSizes(128, 128, 1024)).localPeers(0);
    HostWaitCheck watch =
        new HostWaitCheck(0, call, Optional::empty, localPeers, RemoteRanks.NONE, 0);
    return new PointToPoint(
        0, 2, peer -> new Prepared(content, summed), new WaitLoop(watch, localPeers.size(), false));
  }
}
