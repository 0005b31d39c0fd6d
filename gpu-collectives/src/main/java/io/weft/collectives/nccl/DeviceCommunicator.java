package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.Operation;
import io.weft.device.Event;
import java.util.List;

/** What the implementation over NCCL offers beyond {@link GpuCommunicator}. */
public interface DeviceCommunicator extends GpuCommunicator {
  /**
   * Runs sends and receives as {@link #runGroup(List)} does, but after work of this process's
   * devices. They are enqueued at once. The device waits for that work; the host does not.
   *
   * <p>If the work fails later, the operations run all the same, because a device cannot skip what
   * is enqueued. Check these events before you use the received data. If the work never ends, the
   * group fails at its timeout. Its buffers are then kept until the device is done with them. They
   * are kept for good if the device still works about 40 s after this communicator was closed.
   *
   * @param operations sends and receives whose buffers are in device memory
   * @param after recorded work of CUDA lanes, see {@link Event#isOnDevice}
   * @throws CollectiveException of kind INVALID, before anything is enqueued, if an argument does
   *     not meet these conditions
   */
  void runGroup(List<Operation> operations, List<Event> after);

  /**
   * The host communicator of the same ranks, for small messages that take no part of the GPU. It
   * fails and closes with this one.
   *
   * @throws UnsupportedOperationException unless the options are {@link NcclOptions#forPairs}
   */
  Communicator beside();
}
