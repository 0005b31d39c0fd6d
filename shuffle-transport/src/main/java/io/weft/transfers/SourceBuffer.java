package io.weft.transfers;

import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;
import io.weft.device.HostEvent;

/**
 * An array to send.
 *
 * @param device that has the array
 * @param buffer its elements; they must not change before the transfer's event has ended
 * @param definition the work that writes the elements: a transfer is enqueued once this is
 *     recorded, and reads once it is complete
 */
public record SourceBuffer(DeviceId device, TypedBuffer buffer, Event definition) {
  /** A buffer whose elements are complete. */
  public static SourceBuffer of(DeviceId device, TypedBuffer buffer) {
    return new SourceBuffer(device, buffer, HostEvent.completed("the definition of " + buffer));
  }
}
