package io.weft.examples.bench.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.collectives.ReduceOp;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CollectiveCaseTest {
  private static CollectiveCase of(OperationKind operation, long bytes, int nranks) {
    return CollectiveCase.ofSize(operation, DataType.FLOAT32, ReduceOp.SUM, bytes, nranks, false);
  }

  @ParameterizedTest(name = "{0} of {1} bytes and {2} ranks")
  @CsvSource({
    "ALL_REDUCE, 1024, 4, 256, 1.5",
    "ALL_GATHER, 1024, 4, 64, 0.75",
    "REDUCE_SCATTER, 1024, 2, 128, 0.5",
    "ALL_TO_ALL, 1024, 2, 128, 0.5",
    "RAGGED_ALL_TO_ALL, 1024, 4, 256, 0.9",
    "BROADCAST, 1024, 4, 256, 1",
    "REDUCE, 1024, 4, 256, 1",
    "ALL_GATHER, 8, 4, 1, 0.75"
  })
  void sizesAndBandwidthsAreThoseOfNcclTests(
      OperationKind operation, long bytes, int nranks, long count, double factor) {
    CollectiveCase test = of(operation, bytes, nranks);
    assertThat(test.count()).isEqualTo(count);
    assertThat(test.bytes()).isEqualTo(Math.max(bytes, bytes == 8 ? 16 : bytes));
    double seconds = 0.001;
    assertThat(test.algorithmBandwidth(seconds)).isCloseTo(test.bytes() * 1000.0, within(1e-6));
    assertThat(test.busBandwidth(seconds)).isCloseTo(test.bytes() * 1000.0 * factor, within(1e-6));
  }

  @Test
  void anOrderIsParsedBack() {
    CollectiveCase test =
        new CollectiveCase(
            OperationKind.REDUCE_SCATTER, DataType.BFLOAT16, ReduceOp.AVERAGE, 77, 3, true);
    String order = test.order(false, 9);
    assertThat(order).isEqualTo("reduce-scatter bfloat16 average 77 1 0 9");
    assertThat(CollectiveCase.parse(order.split(" "), 3)).isEqualTo(test);
  }

  @Test
  void unknownOperationsAreRejected() {
    assertThatThrownBy(() -> CollectiveCase.operation("barrier"))
        .hasMessage("no operation to measure is called barrier");
    assertThatThrownBy(() -> CollectiveCase.reduction("xor"))
        .hasMessage("no reduction is called xor");
  }

  @ParameterizedTest
  @CsvSource({
    "8, 8, 8 B",
    "32K, 32768, 32 KiB",
    "1m, 1048576, 1 MiB",
    "1536, 1536, 1.5 KiB",
    "2GiB, 2147483648, 2 GiB"
  })
  void sizesAreParsedAndFormatted(String text, long bytes, String shown) {
    assertThat(Sizes.parse(text)).isEqualTo(bytes);
    assertThat(Sizes.text(bytes)).isEqualTo(shown);
  }

  @Test
  void aWrongSizeIsNamedInTheMessage() {
    assertThatThrownBy(() -> Sizes.parse("many")).hasMessageContaining("many");
  }
}
