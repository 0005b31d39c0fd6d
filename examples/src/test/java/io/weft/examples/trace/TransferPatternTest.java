package io.weft.examples.trace;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.examples.trace.TransferPattern.Move;
import org.junit.jupiter.api.Test;

class TransferPatternTest {
  private static TraceEvent end(String direction, int startMicros) {
    boolean sends = direction.equals("send");
    ObjectNode event = new ObjectMapper().createObjectNode();
    event.put("name", "Transfer").put("ts", startMicros).put("dur", 5);
    event
        .putObject("args")
        .put("direction", direction)
        .put("device", sends ? "executor 1/device 0" : "executor 2/device 0")
        .put("peer", sends ? "executor 2/device 0" : "executor 1/device 0")
        .put("key", 7)
        .put("bytes", 64)
        .put("failure", "");
    return new TraceEvent(event);
  }

  /** A key is used again and again, and the receiver's recording has lost its oldest event. */
  @Test
  void endsWhoseOtherEndWasLostDoNotShiftTheRest() {
    TransferPattern.Builder builder = new TransferPattern.Builder();
    for (int start = 0; start < 40; start += 10) {
      assertThat(builder.add(end("send", start))).isTrue();
      if (start > 0) {
        assertThat(builder.add(end("receive", start))).isTrue();
      }
    }
    TransferPattern pattern = builder.build();
    assertThat(pattern.leftOut()).isEqualTo(1);
    assertThat(pattern.moves()).hasSize(3);
    assertThat(pattern.moves())
        .extracting(Move::send)
        .isEqualTo(pattern.moves().stream().map(Move::receive).toList());
  }
}
