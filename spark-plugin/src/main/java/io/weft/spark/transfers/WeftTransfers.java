package io.weft.spark.transfers;

import io.weft.spark.config.Activation;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import java.util.List;
import java.util.Optional;
import org.apache.spark.TaskContext;

/**
 * Transfers between executors for their tasks, of any stage:
 *
 * <pre>{@code
 * DeviceTransfers transfers = WeftTransfers.transfers();
 * DeviceId here = WeftTransfers.device();
 * DeviceId there = new DeviceId(otherExecutorId, 0);
 * List<Event> sent =
 *     transfers.send(List.of(SourceBuffer.of(here, buffer)), List.of(there), new long[] {key});
 * }</pre>
 *
 * <p>With a codec as the last argument, for example {@code CodecKind.BFLOAT16}, arrays are encoded
 * chunk by chunk; the receiver must name the same codec.
 *
 * <p>Both tasks must run at the same time. They must know each other's executor ids. When an
 * executor is lost, transfers with it fail with a message that names it.
 *
 * <p>When a task fails or is killed, its transfers that have not ended are withdrawn. The other
 * ends wait for the transfers of the next attempt, which may use the same keys or others; with
 * others they fail. Between tasks of one stage, transfers of an earlier stage attempt never match
 * those of a later one.
 *
 * <p>Thread-safe.
 */
public final class WeftTransfers {
  private WeftTransfers() {}

  /**
   * The transfers of this executor, for this task if a task calls. The plugin closes them.
   *
   * @throws IllegalStateException if Weft's plugin is off
   */
  public static DeviceTransfers transfers() {
    TaskContext task = TaskContext.get();
    return task == null ? running().transfers() : running().transfers(task);
  }

  private static ExecutorTransfers running() {
    return ExecutorTransfers.running()
        .orElseThrow(
            () ->
                new IllegalStateException(
                    ("Weft has no transfers in this JVM. Is spark.plugins set to %s, is this a task"
                            + " on an executor, and does the driver's log say that Weft stays off?")
                        .formatted(Activation.PLUGIN)));
  }

  /**
   * This executor's host, for arrays in host memory.
   *
   * @throws IllegalStateException if Weft's plugin is off
   */
  public static DeviceId device() {
    return running().transfers().devices().get(ExecutorDirectory.HOST);
  }

  /**
   * This executor's GPU, for arrays in GPU memory. Empty if the executor has no GPU that Weft can
   * use; its log says why.
   *
   * @throws IllegalStateException if Weft's plugin is off
   */
  public static Optional<DeviceId> gpu() {
    List<DeviceId> devices = running().transfers().devices();
    return devices.size() > ExecutorDirectory.GPU
        ? Optional.of(devices.get(ExecutorDirectory.GPU))
        : Optional.empty();
  }

  /** The device id of another executor's GPU. Does not check that it exists. */
  public static DeviceId gpuOf(String executorId) {
    return new DeviceId(executorId, ExecutorDirectory.GPU);
  }
}
