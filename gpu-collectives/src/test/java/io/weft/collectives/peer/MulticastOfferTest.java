package io.weft.collectives.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.descriptor.InboxAddress;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** What ranks tell each other before they have multicast. */
class MulticastOfferTest {
  private static MulticastOffer offer(long bytes, long objectBytes) {
    return new MulticastOffer(
        UUID.randomUUID(),
        bytes,
        objectBytes,
        new InboxAddress(UUID.randomUUID(), UUID.randomUUID()));
  }

  @Test
  void offersArriveAsTheyAre() {
    MulticastOffer offer = offer(1000, 4 << 20);
    assertThat(MulticastOffer.decode(offer.encode())).isEqualTo(offer);
  }

  /** Of drivers with other granules. */
  @Test
  void objectsOfOtherSizesAreRefused() {
    MulticastOffer.requireTeam(List.of(offer(1000, 4 << 20), offer(1000, 4 << 20)));
    assertThatThrownBy(
            () -> MulticastOffer.requireTeam(List.of(offer(1000, 4 << 20), offer(1000, 8 << 20))))
        .hasMessage(
            "by its driver rank 0 needs 4194304 bytes for multicast, rank 1 by its own 8388608");
  }
}
