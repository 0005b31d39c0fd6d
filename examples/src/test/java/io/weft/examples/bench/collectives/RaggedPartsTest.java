package io.weft.examples.bench.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.RaggedLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RaggedPartsTest {
  @Test
  void partsGrowWithTheDistanceOfTheRank() {
    RaggedLayout layout = new RaggedParts(1000, 4).layout(3);
    assertThat(new long[] {layout.sendSize(3), layout.sendSize(0)}).containsExactly(100, 200);
    assertThat(new long[] {layout.sendSize(1), layout.sendSize(2)}).containsExactly(300, 400);
    assertThat(new long[] {layout.receiveSize(3), layout.receiveSize(2)}).containsExactly(100, 200);
    assertThat(new long[] {layout.receiveSize(1), layout.receiveSize(0)}).containsExactly(300, 400);
  }

  /** Also with fewer elements than parts. */
  @ParameterizedTest(name = "{0} elements on {1} ranks")
  @CsvSource({"1, 2", "2, 2", "2, 4", "16, 4", "1001, 5", "65536, 7"})
  void allLayoutsAgreeAndFillTheBuffers(int count, int nranks) {
    RaggedParts parts = new RaggedParts(count, nranks);
    for (int rank = 0; rank < nranks; rank++) {
      RaggedLayout mine = parts.layout(rank);
      assertThat(mine.sentRows()).isEqualTo(count);
      int received = 0;
      for (int peer = 0; peer < nranks; peer++) {
        RaggedLayout theirs = parts.layout(peer);
        assertThat(mine.receiveSize(peer)).isEqualTo(theirs.sendSize(rank));
        for (int i = 0; i < theirs.sendSize(rank); i++) {
          assertThat(parts.sender(rank, theirs.targetOffset(rank) + i)).isEqualTo(peer);
          received++;
        }
      }
      assertThat(received).isEqualTo(count);
    }
  }
}
