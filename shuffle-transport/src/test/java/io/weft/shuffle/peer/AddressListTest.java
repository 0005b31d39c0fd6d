package io.weft.shuffle.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.support.Noise;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import org.junit.jupiter.api.Test;

class AddressListTest {
  private static final GpuEnd NONE = GpuEnd.without("there is no CUDA driver");

  @Property(tries = 500, shrinking = ShrinkingMode.OFF)
  void whatWasEncodedIsDecoded(@ForAll long seed) throws IOException {
    List<PeerAddress> addresses = addresses(new SplittableRandom(seed));
    assertThat(AddressList.decode(AddressList.encode(addresses))).isEqualTo(addresses);
  }

  @Property(tries = 5000, shrinking = ShrinkingMode.OFF)
  void damagedBytesAreRefusedOrSound(@ForAll long seed) {
    Noise.round(
        seed,
        random -> {
          byte[] sound = AddressList.encode(addresses(random));
          byte[] bytes = Noise.mangled(ByteBuffer.wrap(sound), random, 0);
          try {
            assertThat(AddressList.decode(bytes).size()).isLessThanOrEqualTo(bytes.length);
          } catch (IOException e) {
            assertThat(e).hasMessageNotContaining("null");
          }
        });
  }

  /** A thousand executors ask for a thousand addresses each. */
  @Test
  void anAddressOnAnotherKernelTakesFewBytes() {
    List<PeerAddress> addresses = new ArrayList<>();
    for (int i = 0; i < 1000; i++) {
      String host = "ip-10-0-%d-%d.ec2.internal".formatted(i / 250, i % 250);
      String folder = "/dev/shm/weft-user/app-20261123-0001/" + i;
      addresses.add(
          new PeerAddress(
                  Integer.toString(i),
                  "%08x".formatted(i * 0x9E3779B9),
                  host,
                  30000 + i * 7 % 10000,
                  folder,
                  "a token of 32 characters",
                  "a boot id",
                  "0.1.0",
                  NONE)
              .withoutFolder());
    }
    assertThat(AddressList.encode(addresses).length).isLessThan(40 * addresses.size());
  }

  @Test
  void anotherLayoutIsRefused() {
    byte[] bytes = AddressList.encode(List.of());
    bytes[0]++;
    assertThatThrownBy(() -> AddressList.decode(bytes))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("layout 2, not 1");
  }

  private static List<PeerAddress> addresses(SplittableRandom random) {
    List<PeerAddress> addresses = new ArrayList<>();
    for (int left = 1 + random.nextInt(20); left > 0; left--) {
      GpuEnd gpu =
          random.nextBoolean()
              ? NONE
              : GpuEnd.of("uuid-" + random.nextInt(3), random.nextInt(300), "H100", "2.28.3")
                  .sharing(random.nextBoolean());
      addresses.add(
          new PeerAddress(
              text(random),
              text(random),
              text(random),
              random.nextInt(65536),
              text(random),
              text(random),
              text(random),
              text(random),
              gpu));
    }
    return addresses;
  }

  private static String text(SplittableRandom random) {
    return "é/x".repeat(random.nextInt(3) * random.nextInt(40)) + random.nextInt(50);
  }
}
