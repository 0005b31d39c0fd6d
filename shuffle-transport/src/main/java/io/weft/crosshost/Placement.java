package io.weft.crosshost;

import io.weft.crosshost.buffer.BufferShape;
import java.util.Optional;

/**
 * One array that is to be at another device. All executors may be given the same placements: each
 * does its part, and those at neither end do nothing.
 *
 * @param source where the array is
 * @param destination where it is to be, on another executor
 * @param shape of the array, not empty
 * @param key unique among the transfers between the two devices that may be under way at a time
 * @param data the array, on the source's executor; empty elsewhere
 */
public record Placement(
    DeviceId source,
    DeviceId destination,
    BufferShape shape,
    long key,
    Optional<SourceBuffer> data) {
  /** As the executors see it that do not have the array. */
  public static Placement of(DeviceId source, DeviceId destination, BufferShape shape, long key) {
    return new Placement(source, destination, shape, key, Optional.empty());
  }

  /** As the source's executor sees it. */
  public static Placement of(SourceBuffer data, DeviceId destination, BufferShape shape, long key) {
    return new Placement(data.device(), destination, shape, key, Optional.of(data));
  }
}
