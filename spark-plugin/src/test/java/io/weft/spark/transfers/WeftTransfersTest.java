package io.weft.spark.transfers;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class WeftTransfersTest {
  @Test
  void withoutThePluginTheErrorNamesTheSetting() {
    assertThatThrownBy(WeftTransfers::transfers)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("Is spark.plugins set to io.weft.spark.WeftPlugin");
  }
}
