package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.MessageChannel.ByteLink;
import io.weft.memory.Memory;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * If any bit of a message between hosts changes, the message is refused and both ends are named.
 */
class DamagedMessageTest {
  private static final int BYTES = 48;
  private static final int MESSAGE_BYTES = FrameHeader.BYTES + BYTES + 2 * FrameHeader.SUM_BYTES;

  private final TypedBuffer sent =
      TypedBuffer.wrap(ByteBuffer.allocateDirect(BYTES), DataType.INT32);
  private final ByteBuffer target = ByteBuffer.allocateDirect(BYTES);
  private final Signature signature = new Send(sent, 0).signature();

  /** Records sent bytes, and delivers bytes in pieces as a network does. */
  private static final class Wire implements ByteLink {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final int pieceBytes;
    private byte[] in = new byte[0];
    private int taken;

    Wire(int pieceBytes) {
      this.pieceBytes = pieceBytes;
    }

    @Override
    public int put(long address, long bytes) {
      int count = (int) Math.min(bytes, pieceBytes);
      for (int i = 0; i < count; i++) {
        out.write(Memory.getByte(address + i));
      }
      return count;
    }

    @Override
    public boolean push() {
      return true;
    }

    @Override
    public int take(long address, long bytes) {
      int count = (int) Math.min(Math.min(bytes, pieceBytes), in.length - taken);
      for (int i = 0; i < count; i++) {
        Memory.putByte(address + i, in[taken + i]);
      }
      taken += count;
      return count;
    }

    @Override
    public boolean leavesHost() {
      return true;
    }
  }

  /** The bytes of a message on the wire, with or without content. */
  private byte[] message(int bytes, int pieceBytes) {
    return message(5, bytes, pieceBytes);
  }

  private byte[] message(long number, int bytes, int pieceBytes) {
    for (int i = 0; i < BYTES; i++) {
      Memory.putByte(sent.address() + i, (byte) (3 * i));
    }
    Wire wire = new Wire(pieceBytes);
    MessageChannel sender = new MessageChannel(1, 0, wire, new ArrayDeque<>());
    sender.send(sent.address()).write(signature, number, 0, 0, bytes);
    while (sender.sending() > 0) {
      assertThat(sender.progressOut()).isTrue();
    }
    return wire.out.toByteArray();
  }

  private MessageChannel receiver(byte[] message, int bytes, int pieceBytes) {
    Wire wire = new Wire(pieceBytes);
    wire.in = message;
    MessageChannel receiver = new MessageChannel(0, 1, wire, new ArrayDeque<>());
    receiver.receive(Memory.addressOf(target)).write(signature, 5, 0, 0, bytes);
    return receiver;
  }

  private static void takeAll(MessageChannel receiver) {
    while (receiver.receiving() > 0 && receiver.progressIn()) {
      // Repeats until no byte moves.
    }
  }

  /** Pieces end within the header, within its checksum, after both, and nowhere. */
  @ParameterizedTest
  @ValueSource(ints = {1, 13, 41, 42, 44, 1000})
  void validMessagesArriveInPiecesOfAnySize(int pieceBytes) {
    byte[] message = message(BYTES, pieceBytes);
    assertThat(message).hasSize(MESSAGE_BYTES).isEqualTo(message(BYTES, 1000));
    MessageChannel receiver = receiver(message, BYTES, pieceBytes);
    takeAll(receiver);
    assertThat(receiver.receiving()).isZero();
    for (int i = 0; i < BYTES; i++) {
      assertThat(target.get(i)).isEqualTo((byte) (3 * i));
    }
  }

  @Test
  void everyFlippedBitIsDetected() {
    byte[] sound = message(BYTES, 1000);
    for (int bit = 0; bit < 8 * sound.length; bit++) {
      byte[] damaged = sound.clone();
      damaged[bit / 8] ^= (byte) (1 << bit % 8);
      refuses(receiver(damaged, BYTES, 1000), bit / 8 < FrameHeader.BYTES + FrameHeader.SUM_BYTES);
    }
  }

  @Test
  void everyFlippedBitOfAMessageWithoutBytesIsDetected() {
    byte[] sound = message(0, 1000);
    assertThat(sound).hasSize(FrameHeader.BYTES + FrameHeader.SUM_BYTES);
    for (int bit = 0; bit < 8 * sound.length; bit++) {
      byte[] damaged = sound.clone();
      damaged[bit / 8] ^= (byte) (1 << bit % 8);
      refuses(receiver(damaged, 0, 1000), true);
    }
  }

  private static void refuses(MessageChannel receiver, boolean header) {
    CollectiveException failure =
        catchThrowableOfType(CollectiveException.class, () -> takeAll(receiver));
    assertThat(failure.kind()).isEqualTo(Kind.IO);
    assertThat(failure.ranks()).isEqualTo(List.of(1));
    assertThat(failure)
        .hasMessageContaining("message #5: send of 12 int32")
        .hasMessageContaining("of rank 1 was damaged on its way to rank 0: ")
        .hasMessageContaining(header ? "its header has CRC32C" : "it has CRC32C");
    assertThat(receiver.receiving()).as("nothing arrived").isEqualTo(1);
    assertThatThrownBy(receiver::progressIn).isSameAs(failure);
  }

  /** The bytes and their checksum are valid, but the header before them is another one. */
  @Test
  void checksumOfAMessageCoversItsHeader() {
    byte[] mixed = message(5, BYTES, 1000);
    byte[] next = message(6, BYTES, 1000);
    int start = FrameHeader.BYTES + FrameHeader.SUM_BYTES;
    System.arraycopy(next, start, mixed, start, BYTES + FrameHeader.SUM_BYTES);
    refuses(receiver(mixed, BYTES, 1000), false);
  }
}
