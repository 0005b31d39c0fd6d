package io.weft.spark.compat;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import scala.Option;

class MapStatusesTest {
  @Test
  void carriesLocationSizesAndMapId() {
    BlockManagerId location = BlockManagerId.apply("5", "host", 7077, Option.empty());
    MapStatus status = MapStatuses.create(location, new long[] {0, 8, 1 << 20}, 42, 99);
    assertThat(status.location()).isEqualTo(location);
    assertThat(status.mapId()).isEqualTo(42);
    assertThat(status.getSizeForBlock(0)).isZero();
    assertThat(status.getSizeForBlock(1)).isPositive();
    assertThat(status.getSizeForBlock(2)).isBetween(1L << 19, 1L << 21);
  }
}
