package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.Operation;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.VirtualMemory;
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

  /**
   * Lets the devices of all ranks access this memory directly. All ranks call it together, in the
   * order of their operations. If the receive buffers of a ragged all-to-all are in such memory on
   * all ranks, the devices write it: each rank writes its rows straight into the memory of the
   * others, between two barriers of the devices. NCCL runs all other operations.
   *
   * @param memory of this rank's GPU and of {@link io.weft.device.cuda.CudaMemoryPool.Kind#DEVICE};
   *     sizes may differ between ranks
   * @return close it once no rank has an operation in it; it keeps the memory until no rank writes
   *     to it any more
   * @throws CollectiveException of kind INVALID, on all ranks, if one cannot access the memory of
   *     another: they are not on one host, or there are more than 16. The communicator does not
   *     break.
   */
  SharedWindow share(CudaMemory memory);

  /**
   * Lets a single write of any device reach memory of all ranks. All ranks call it together, in the
   * order of their operations. If the receive buffers of an all-gather or a broadcast are at the
   * same place in it on all ranks, the devices write it: each rank writes its elements once,
   * between two barriers of the devices. NCCL runs all other operations, and those within a graph.
   *
   * @param memory of this rank's GPU and of {@link VirtualMemory#forMulticast}; the first of its
   *     segment, which starts at a multiple of its granularity; of the same size on all ranks
   * @return close it once no rank has an operation in it; it keeps the memory until no rank writes
   *     to it any more
   * @throws CollectiveException of kind INVALID, on all ranks, if one cannot take part. Possible
   *     causes: the driver offers no multicast; the GPU is older than compute capability 9.0; two
   *     ranks are on one GPU. Or the ranks are not 2 to 16 of one host, one user and one network
   *     namespace. Or the memory is of another kind or GPU, is not the first of its segment, or
   *     differs in size between ranks. The communicator does not break. See {@link
   *     io.weft.device.cuda.MulticastSupport#whyNot}.
   */
  SharedWindow shareByMulticast(CudaMemory memory);

  /**
   * Registers memory as a window. All ranks call it together, in the order of their operations.
   * Operations on buffers in a window bypass NCCL's own buffers where NCCL can do so.
   *
   * @param memory of this rank's GPU and of {@link NcclMemory} or {@link VirtualMemory}; the first
   *     of its segment, which starts at a multiple of 4096; of the same size on all ranks
   * @return close it once no rank has an operation in it, before or after the communicator; it
   *     keeps the memory until then
   * @throws CollectiveException of kind INVALID or MISMATCH, on all ranks, if one of them cannot
   *     register it; the communicator does not break
   */
  DeviceWindow register(CudaMemory memory);
}
