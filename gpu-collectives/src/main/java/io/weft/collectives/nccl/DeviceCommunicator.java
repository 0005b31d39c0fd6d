package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Operation;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.VirtualMemory;
import java.util.List;
import java.util.Optional;

/** A communicator whose ranks are GPUs. */
public interface DeviceCommunicator extends Communicator {
  /** Of ranks that take no part in what a communicator is split into. */
  int NO_COLOR = -1;

  /**
   * As {@link #runGroup(List)}, of sends and receives behind work of this process's devices: they
   * are enqueued at once, and the device waits for that work, the host does not. Where the work
   * fails later they run all the same, as a device cannot skip what is enqueued: whoever uses what
   * was moved looks at these events first. Where it never ends, the group fails at its timeout and
   * its buffers are kept until the device is done with them, or for good where it still works some
   * 40 s after this communicator was closed.
   *
   * @param operations sends and receives whose buffers lie in memory of devices
   * @param after recorded work of CUDA lanes, see {@link Event#isOnDevice}
   * @throws CollectiveException of kind INVALID at once, with nothing enqueued, when something of
   *     this does not hold
   */
  void runGroup(List<Operation> operations, List<Event> after);

  /**
   * Splits this communicator, which all ranks do together, in the order of their operations. This
   * one stays as it is, unless that fails: then it is broken. What is split off shares no failure
   * with it, has its options, and is to be closed too.
   *
   * @param color 0 or more; ranks of one color become one communicator; NO_COLOR for none
   * @param key orders the ranks of a color, those of the same key by their rank here
   * @return empty without a color
   */
  Optional<DeviceCommunicator> split(int color, int key);

  /**
   * Has the devices of all ranks reach memory of each by themselves, which all ranks do together,
   * in the order of their operations. A ragged all-to-all whose receive buffers lie in it, on all
   * ranks, is then written by the devices: each rank writes its rows straight into the memory of
   * the others, between two barriers of the devices. NCCL does all others.
   *
   * @param memory of this rank's GPU and of {@link io.weft.device.cuda.CudaMemoryPool.Kind#DEVICE};
   *     of any size on each rank
   * @return to be closed when no rank has an operation in it any more; it keeps the memory until no
   *     rank writes to it any more
   * @throws CollectiveException of kind INVALID, on all ranks, when one cannot reach another's
   *     memory, for which the communicator does not break: they are not on one host, or there are
   *     more than 16
   */
  SharedWindow share(CudaMemory memory);

  /**
   * Has one write of any device reach memory of all ranks, which all ranks do together, in the
   * order of their operations. An all-gather or a broadcast whose receive buffers lie in it, on all
   * ranks at the same place, is then written by the devices: each rank writes its elements once,
   * between two barriers of the devices. NCCL does all others, and those within a graph.
   *
   * @param memory of this rank's GPU and of {@link VirtualMemory#forMulticast}, at a multiple of
   *     its granularity as the first of a segment is; as many bytes on all ranks
   * @return to be closed when no rank has an operation in it any more; it keeps the memory until no
   *     rank writes to it any more
   * @throws CollectiveException of kind INVALID, on all ranks, when one cannot take part, for which
   *     the communicator does not break: the driver offers no multicast, the GPU is older than
   *     compute capability 9.0, two ranks are on one GPU, or they are not 2 to 16 of one host, one
   *     user and one network namespace; the memory is another, of another GPU, not the first of its
   *     segment, or not as much on all ranks; see {@link
   *     io.weft.device.cuda.MulticastSupport#whyNot}
   */
  SharedWindow shareByMulticast(CudaMemory memory);

  /**
   * Registers memory as a window, which all ranks do together, in the order of their operations:
   * operations on buffers in it go without NCCL's own buffers where NCCL can do so.
   *
   * @param memory of this rank's GPU and of {@link NcclMemory} or {@link VirtualMemory}, at a
   *     multiple of 4096 as the first of a segment is; as many bytes on all ranks
   * @return to be closed when no rank has an operation in it any more, before or after the
   *     communicator; it keeps the memory until then
   * @throws CollectiveException of kind INVALID or MISMATCH, on all ranks, when it cannot be
   *     registered on one of them, for which the communicator does not break
   */
  DeviceWindow register(CudaMemory memory);
}
