package io.weft.device.cuda;

import io.weft.device.Event;

/** Orders streams behind work of lanes on the device, so that no thread of the host waits. */
public final class StreamOrder {
  private StreamOrder() {}

  /**
   * Lets what is enqueued on a stream from now on wait, on the device, for work that is recorded.
   * It waits for no longer where that work has ended or was given up, well or not: what is enqueued
   * runs all the same, and whoever uses its results looks at the event afterwards.
   *
   * @param work of a {@link CudaLane}, of any device of this process
   * @throws IllegalStateException when it is not recorded yet: there is nothing to wait for
   */
  public static void follow(Event work, CudaStream stream) {
    if (!(work instanceof CudaEvent cuda)) {
      throw new IllegalArgumentException(work + " is no work of a CUDA lane");
    }
    if (cuda.state() == Event.State.PENDING) {
      throw new IllegalStateException(work + " has no place on a stream yet");
    }
    cuda.orderIfRunning(stream);
  }
}
