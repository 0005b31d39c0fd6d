package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.store.BlockKey;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

class DeviceCatalogTest {
  private final DeviceCatalog catalog = new DeviceCatalog();

  private static DeviceOutput output(int shuffle, long map) {
    return new DeviceOutput(new BlockKey(shuffle, map), List.of());
  }

  @Test
  void attemptsHaveSeparateOutputs() throws IOException {
    catalog.publish(output(1, 10));
    catalog.publish(output(1, 11));
    assertThat(catalog.keys()).containsExactly(new BlockKey(1, 10), new BlockKey(1, 11));
    catalog.remove(new BlockKey(1, 10));
    catalog.remove(new BlockKey(1, 10));
    assertThat(catalog.find(new BlockKey(1, 10))).isEmpty();
    assertThat(catalog.find(new BlockKey(1, 11))).isPresent();
    assertThatThrownBy(() -> catalog.publish(output(1, 11)))
        .hasMessage("shuffle 1 map 11 was published before");
  }

  /** A losing attempt ends after its shuffle was removed. */
  @Test
  void lateOutputsOfARemovedShuffleAreRefused() throws IOException {
    catalog.publish(output(3, 1));
    catalog.publish(output(4, 1));
    catalog.removeShuffle(3);
    assertThat(catalog.keys()).containsExactly(new BlockKey(4, 1));
    assertThatThrownBy(() -> catalog.publish(output(3, 2)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("its shuffle was removed meanwhile");
    catalog.close();
    assertThat(catalog.keys()).isEmpty();
    assertThatThrownBy(() -> catalog.publish(output(5, 1))).isInstanceOf(IOException.class);
  }

  @Test
  void aShuffleThatIsComputedAgainIsAccepted() throws IOException {
    catalog.publish(output(3, 1));
    catalog.removeShuffle(3);
    assertThat(catalog.wasRemoved(3)).isTrue();
    catalog.begin(3);
    assertThat(catalog.wasRemoved(3)).isFalse();
    catalog.publish(output(3, 2));
    assertThat(catalog.keys()).containsExactly(new BlockKey(3, 2));
    catalog.close();
  }
}
