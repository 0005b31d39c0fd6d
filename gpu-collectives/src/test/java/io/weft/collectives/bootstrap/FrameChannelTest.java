package io.weft.collectives.bootstrap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.Deadline;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Messages of agents and bootstraps arrive unchanged or not at all. */
class FrameChannelTest {
  private static final int MAX = 4096;
  private static final byte[] MESSAGE = "what a rank says".getBytes(StandardCharsets.US_ASCII);

  private static Deadline soon() {
    return Deadline.after(Duration.ofSeconds(60));
  }

  /** Uses two ends of a connection, in one thread. */
  private interface Ends {
    void use(SocketChannel one, SocketChannel other) throws IOException;
  }

  private static void connected(Ends ends) throws IOException {
    try (ServerSocketChannel server = ServerSocketChannel.open()) {
      server.bind(new InetSocketAddress("127.0.0.1", 0));
      try (SocketChannel one = SocketChannel.open(server.getLocalAddress());
          SocketChannel other = server.accept()) {
        ends.use(one, other);
      }
    }
  }

  private static byte[] onTheWire(byte[] message) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    connected(
        (one, other) -> {
          FrameChannel sender = new FrameChannel(one, MAX);
          sender.send(message);
          assertThat(DeadlinePoller.await(sender::flush, soon())).isTrue();
          one.shutdownOutput();
          ByteBuffer read = ByteBuffer.allocate(MAX);
          while (other.read(read) >= 0) {
            assertThat(read.hasRemaining()).isTrue();
          }
          bytes.write(read.array(), 0, read.position());
        });
    return bytes.toByteArray();
  }

  private static List<byte[]> received(byte[] bytes) throws IOException {
    List<byte[]> messages = new ArrayList<>();
    connected(
        (one, other) -> {
          ByteBuffer out = ByteBuffer.wrap(bytes);
          while (out.hasRemaining()) {
            one.write(out);
          }
          FrameChannel receiver = new FrameChannel(other, MAX);
          assertThat(DeadlinePoller.await(() -> poll(receiver, messages), soon())).isTrue();
        });
    return messages;
  }

  private static boolean poll(FrameChannel receiver, List<byte[]> messages) throws IOException {
    Optional<byte[]> message = receiver.poll();
    message.ifPresent(messages::add);
    return message.isPresent();
  }

  @Test
  void validMessagesArrive() throws IOException {
    assertThat(received(onTheWire(MESSAGE))).containsExactly(MESSAGE);
    assertThat(received(onTheWire(new byte[0]))).containsExactly(new byte[0]);
  }

  /** Also in the length: no reader waits for bytes that were never sent. */
  @Test
  void everyFlippedBitIsDetected() throws IOException {
    byte[] sound = onTheWire(MESSAGE);
    for (int bit = 0; bit < 8 * sound.length; bit++) {
      byte[] damaged = sound.clone();
      damaged[bit / 8] ^= (byte) (1 << bit % 8);
      String what = bit / 8 < 12 ? "a message's header" : "a message of 16 bytes";
      assertThatThrownBy(() -> received(damaged))
          .isInstanceOf(IOException.class)
          .hasMessageContaining(what + " was damaged on its way: it has CRC32C ");
    }
  }

  @Test
  void aMessageThatIsTooLongIsRefused() throws IOException {
    byte[] tooLong = onTheWire(new byte[MAX - 20]);
    assertThat(received(tooLong).get(0)).hasSize(MAX - 20);
    connected(
        (one, other) -> {
          FrameChannel sender = new FrameChannel(one, MAX);
          sender.send(new byte[MAX + 1]);
          FrameChannel receiver = new FrameChannel(other, MAX);
          assertThatThrownBy(
                  () ->
                      DeadlinePoller.await(
                          () -> sender.flush() && receiver.poll().isPresent(), soon()))
              .isInstanceOf(IOException.class)
              .hasMessageContaining("a message of 4097 bytes where at most 4096 are allowed");
        });
  }
}
