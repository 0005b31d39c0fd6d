package io.weft.device.cuda;

import io.weft.device.Event;

/** Makes streams wait for work of lanes on the device, so that no host thread waits. */
public final class StreamOrder {
  private StreamOrder() {}

  /**
   * Makes later work of a stream wait, on the device, for recorded work. There is no wait for work
   * that has ended or was given up, with or without a failure. The later work runs in any case, so
   * the user of its results checks the event afterwards.
   *
   * @param work an event of a {@link CudaLane}, of any device of this process
   * @throws IllegalStateException when it is not recorded yet, so that a wait is impossible
   */
  public static void follow(Event work, CudaStream stream) {
    if (!(work instanceof CudaEvent cuda)) {
      throw new IllegalArgumentException(work + " is not work of a CUDA lane");
    }
    if (cuda.state() == Event.State.PENDING) {
      throw new IllegalStateException(work + " has no place on a stream yet");
    }
    cuda.orderIfRunning(stream);
  }
}
