package io.weft.transfers.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.transfers.gpu.StagedWire.WaveSplitter;
import java.util.List;
import org.junit.jupiter.api.Test;

class WaveSplitterTest {
  private static List<List<String>> cut(long waveBytes, TypedBuffer... arrays) {
    return WaveSplitter.of(List.of(arrays), waveBytes).stream()
        .map(wave -> wave.stream().map(part -> part.address() + "+" + part.bytes()).toList())
        .toList();
  }

  @Test
  void arraysAreCutInTheirOrder() {
    TypedBuffer ten = TypedBuffer.at(100, DataType.INT8, 10);
    TypedBuffer twelve = TypedBuffer.at(1000, DataType.INT32, 3);
    assertThat(cut(8, ten, twelve))
        .containsExactly(List.of("100+8"), List.of("108+2", "1000+6"), List.of("1006+6"));
    assertThat(cut(22, ten, twelve)).containsExactly(List.of("100+10", "1000+12"));
    assertThat(cut(10, ten)).containsExactly(List.of("100+10"));
    assertThat(cut(8)).isEmpty();
  }
}
