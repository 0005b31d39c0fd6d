package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.CollectiveException;
import org.junit.jupiter.api.Test;

class PreloaderTest {
  @Test
  void loadingHappensOnceInTheOrderOfItsRequests() {
    StringBuilder order = new StringBuilder();
    Preloader preparation =
        new Preloader()
            .load("driver", () -> order.append("driver "))
            .load("kernel", () -> order.append("kernel "))
            .load("driver", () -> order.append("again "));
    preparation.load(0);
    preparation.load("more", () -> order.append("more "));
    preparation.load(0);
    assertThat(order).hasToString("driver kernel more ");
  }

  @Test
  void failureToLoadNamesTheRankAndTheItem() {
    Preloader preparation =
        new Preloader()
            .load(
                "libnccl",
                () -> {
                  throw new UnsatisfiedLinkError("no such symbol");
                });
    assertThatThrownBy(() -> preparation.load(1))
        .isInstanceOf(CollectiveException.class)
        .hasMessageContaining("rank 1 cannot load libnccl")
        .hasMessageContaining("no such symbol");
  }

  @Test
  void hostCodeLoads() {
    Preloader.ofHost().load(0);
  }
}
