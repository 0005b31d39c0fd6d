package io.weft.transfers;

import java.util.Optional;

/**
 * One array to copy to another device. All executors may pass the same placements: each does its
 * part, and an executor at neither end does nothing.
 *
 * @param source the device that has the array
 * @param destination the device that gets the array, on another executor
 * @param shape of the array, with at least one element
 * @param key unique among the transfers between the two devices that may be under way at a time
 * @param data the array, on the source's executor; empty elsewhere
 */
public record ArrayPlacement(
    DeviceId source,
    DeviceId destination,
    BufferShape shape,
    long key,
    Optional<SourceBuffer> data) {
  /** A placement for executors that do not have the array. */
  public static ArrayPlacement of(
      DeviceId source, DeviceId destination, BufferShape shape, long key) {
    return new ArrayPlacement(source, destination, shape, key, Optional.empty());
  }

  /** A placement for the executor that has the array. */
  public static ArrayPlacement of(
      SourceBuffer data, DeviceId destination, BufferShape shape, long key) {
    return new ArrayPlacement(data.device(), destination, shape, key, Optional.of(data));
  }
}
