package io.weft.shuffle.device;

import io.weft.shuffle.store.BlockKey;

/**
 * One partition of a map output on a device.
 *
 * @param expectedBytes an estimate from the map status
 */
public record DeviceBlock(BlockKey key, int partition, long expectedBytes) {
  /** For example "partition 3 of map output 17 of shuffle 2". */
  @Override
  public String toString() {
    return "partition " + partition + " of " + key;
  }
}
