package io.weft.collectives.nccl;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Operation;
import io.weft.device.Event;
import io.weft.device.cuda.CudaDevice;
import java.util.List;

/** Checks which operations can be enqueued behind device work that has not ended yet. */
final class DeviceOrder {
  private DeviceOrder() {}

  /**
   * Rejects operations and events that the host would have to wait for.
   *
   * @throws CollectiveException of kind INVALID
   */
  static void check(List<Operation> operations, List<Event> after, CudaDevice device) {
    for (Event each : after) {
      if (!each.isOnDevice() || each.state() == Event.State.PENDING) {
        throw CollectiveException.invalid(
            each + " is not recorded work of a device, so no device can wait for it");
      }
    }
    for (Operation operation : operations) {
      if (operation.kind().isCollective()) {
        throw CollectiveException.invalid(
            operation.signature()
                + " is a collective; only sends and receives can follow device work");
      }
      for (TypedBuffer buffer : operation.buffers()) {
        if (isOnHost(buffer, device)) {
          throw CollectiveException.invalid(
              operation.signature()
                  + ": "
                  + buffer
                  + " is memory of the host, which would be read"
                  + " before the work of devices has ended");
        }
      }
    }
  }

  /** Freed memory is accepted here. It is rejected by name later, as in all groups. */
  private static boolean isOnHost(TypedBuffer buffer, CudaDevice device) {
    try {
      return buffer.count() > 0 && !device.isDeviceMemory(buffer.address());
    } catch (IllegalStateException e) {
      return false;
    }
  }
}
