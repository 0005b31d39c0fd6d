package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;

class UniqueIdTest {
  @Test
  void decodesItsText() {
    UniqueId id = UniqueId.create(InetSocketAddress.createUnresolved("some.host", 4321));
    UniqueId back = UniqueId.decode(id.encode());
    assertThat(back).isEqualTo(id).hasSameHashCodeAs(id);
    assertThat(back.rootAddress().orElseThrow().getHostString()).isEqualTo("some.host");
    assertThat(back.rootAddress().orElseThrow().getPort()).isEqualTo(4321);
    assertThat(back.secret()).isEqualTo(id.secret()).hasSize(32);
  }

  @Test
  void twoAreNeverTheSame() {
    assertThat(UniqueId.create()).isNotEqualTo(UniqueId.create());
    assertThat(UniqueId.create().rootAddress()).isEmpty();
  }

  @Test
  void toStringHidesTheSecret() {
    UniqueId id = UniqueId.create();
    assertThat(id.name()).hasSize(32).startsWith(id.toString());
    assertThat(id.toString()).hasSize(8);
    String secret = java.util.HexFormat.of().formatHex(id.secret());
    assertThat(id.name()).doesNotContain(secret.substring(0, 16));
  }

  @Test
  void wrongTextIsRefused() {
    assertThatThrownBy(() -> UniqueId.decode("QUJD"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("has 3");
  }
}
