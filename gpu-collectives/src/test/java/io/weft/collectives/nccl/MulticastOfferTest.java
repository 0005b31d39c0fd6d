package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.nccl.MulticastOpening.MulticastOffer;
import io.weft.device.cuda.InboxAddress;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** The messages of ranks before multicast is set up. */
class MulticastOfferTest {
  private static MulticastOffer offer(long bytes, long objectBytes) {
    return new MulticastOffer(
        UUID.randomUUID(),
        bytes,
        objectBytes,
        new InboxAddress(UUID.randomUUID(), UUID.randomUUID()));
  }

  @Test
  void offersAreDecodedUnchanged() {
    MulticastOffer offer = offer(1000, 4 << 20);
    assertThat(MulticastOffer.decode(offer.encode())).isEqualTo(offer);
  }

  /** Drivers with different granularities. */
  @Test
  void objectsOfOtherSizesAreRefused() {
    MulticastOffer.requireTeam(List.of(offer(1000, 4 << 20), offer(1000, 4 << 20)));
    assertThatThrownBy(
            () -> MulticastOffer.requireTeam(List.of(offer(1000, 4 << 20), offer(1000, 8 << 20))))
        .hasMessage(
            "the driver of rank 0 needs 4194304 bytes for multicast, that of rank 1 8388608");
  }
}
