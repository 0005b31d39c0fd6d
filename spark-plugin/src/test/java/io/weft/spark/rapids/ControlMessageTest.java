package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.rapids.ControlMessage.ControlHello;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ControlMessageTest {
  private static final List<ControlMessage> ALL =
      List.of(
          new ControlMessage.Request(1, 2, new byte[] {3, 4}),
          new ControlMessage.Response(5, new byte[0]),
          new ControlMessage.Refusal(true, 6, "no"),
          new ControlMessage.Refusal(false, 7, "never ß"),
          new ControlMessage.Announcement(8, 9, 1L << 40),
          new ControlMessage.Grant(List.of(10L, 14L, -1L), 11, "communicator id"),
          new ControlMessage.BootstrapRound(12, "round", new byte[] {1}),
          new ControlMessage.Retire(13));

  @Test
  void everyMessageComesBack() {
    for (ControlMessage message : ALL) {
      assertThat(ControlMessage.decode(message.encode()))
          .usingRecursiveComparison()
          .isEqualTo(message);
    }
  }

  @Test
  void truncatedOrTooLongBytesAreNoMessage() {
    for (ControlMessage message : ALL) {
      byte[] bytes = message.encode().array();
      for (int length = 0; length < bytes.length; length++) {
        ByteBuffer part = ByteBuffer.wrap(bytes, 0, length);
        assertThatThrownBy(() -> ControlMessage.decode(part))
            .isInstanceOf(IllegalArgumentException.class);
      }
      ByteBuffer more = ByteBuffer.allocate(bytes.length + 1).put(bytes).rewind();
      assertThatThrownBy(() -> ControlMessage.decode(more)).hasMessageContaining("too many");
    }
  }

  @Test
  void noiseIsNoMessageAndNoHello() {
    Random random = new Random(1);
    for (int i = 0; i < 10_000; i++) {
      byte[] noise = new byte[random.nextInt(60)];
      random.nextBytes(noise);
      try {
        ControlMessage.decode(ByteBuffer.wrap(noise));
      } catch (IllegalArgumentException e) {
        assertThat(e).hasMessageNotContaining("null");
      }
      assertThatThrownBy(() -> ControlHello.decode(ByteBuffer.wrap(noise)))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void aHelloIsForOneExecutorAndOneVersion() {
    ControlHello hello = ControlHello.decode(new ControlHello("1", 2, 3).encode());
    hello.check("1", 3);
    assertThatThrownBy(() -> hello.check("1", 4))
        .hasMessage(
            "executor 2 expected executor 3 and reached executor 4: the address is outdated");
    assertThatThrownBy(() -> hello.check("9", 3))
        .hasMessage("executor 2 has Weft 1 and executor 3 has Weft 9: use one version");
  }

  @Test
  void aLongReasonIsCut() {
    ControlMessage.Refusal refusal =
        (ControlMessage.Refusal)
            ControlMessage.decode(
                new ControlMessage.Refusal(true, 1, "x".repeat(100_000)).encode());
    assertThat(refusal.reason().length()).isBetween(1000, ControlMessage.MAX_TEXT_BYTES);
  }
}
