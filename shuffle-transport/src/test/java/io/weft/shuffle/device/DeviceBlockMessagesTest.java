package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.store.BlockKey;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class DeviceBlockMessagesTest {
  private static final List<DeviceBlock> ASKED =
      List.of(
          new DeviceBlock(new BlockKey(7, 11), 2, 0), new DeviceBlock(new BlockKey(7, 12), 3, 0));

  private static TableLayout table(int rows) {
    return TableLayout.fixed(List.of(TableColumn.of(ColumnKind.LONG, false)), rows);
  }

  @Test
  void blocksComeAsTheyWereAskedFor() throws IOException {
    try (DataInputStream in = DeviceBlockMessages.read(DeviceBlockMessages.prepare(ASKED))) {
      assertThat(in.readByte()).isEqualTo(DeviceBlockMessages.PREPARE);
      assertThat(DeviceBlockMessages.readBlocks(in)).isEqualTo(ASKED);
    }
  }

  @Test
  void tablesComeAsTheyAre() throws IOException {
    var ready = new DeviceBlockMessages.Ready(-5, List.of(List.of(table(3), table(70)), List.of()));
    assertThat(DeviceBlockMessages.readReady(DeviceBlockMessages.ready(ready), ASKED, "9"))
        .isEqualTo(ready);
  }

  @Test
  void aMissingBlockIsNamedWithItsOwner() {
    assertThatThrownBy(
            () -> DeviceBlockMessages.readReady(DeviceBlockMessages.missing(1), ASKED, "9"))
        .isInstanceOf(DeviceFetchException.class)
        .hasMessage("partition 3 of shuffle 7 map 12 is not on the GPU of executor 9 (any more)");
  }

  @Test
  void aDamagedAnswerIsAnError() {
    var ready = new DeviceBlockMessages.Ready(1, List.of(List.of(table(3)), List.of(table(4))));
    byte[] answer = DeviceBlockMessages.ready(ready);
    for (int length = 0; length < answer.length; length++) {
      byte[] cut = Arrays.copyOf(answer, length);
      assertThatThrownBy(() -> DeviceBlockMessages.readReady(cut, ASKED, "9"))
          .as("of %d bytes", length)
          .isInstanceOf(IOException.class);
    }
    assertThatThrownBy(() -> DeviceBlockMessages.readReady(answer, ASKED.subList(0, 1), "9"))
        .hasMessage("2 blocks are the answer for 1");
  }
}
