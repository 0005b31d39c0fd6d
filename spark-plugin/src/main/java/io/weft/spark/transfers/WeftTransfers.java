package io.weft.spark.transfers;

import io.weft.crosshost.CrossHostTransfers;
import io.weft.crosshost.DeviceId;
import io.weft.spark.config.Activation;
import java.util.List;
import java.util.Optional;

/**
 * Transfers between executors for their tasks, of any stage:
 *
 * <pre>{@code
 * CrossHostTransfers transfers = WeftTransfers.transfers();
 * DeviceId here = WeftTransfers.device();
 * DeviceId there = new DeviceId(otherExecutorId, 0);
 * List<Event> sent =
 *     transfers.send(List.of(SourceBuffer.of(here, buffer)), List.of(there), new long[] {key});
 * }</pre>
 *
 * <p>With a codec as the last argument ({@code CodecKind.BFLOAT16}, for one) arrays are encoded on
 * their way, chunk after chunk; the receiver names the same.
 *
 * <p>Both tasks have to run at the same time, each its part; how they come to know each other's
 * executors is theirs. When an executor is lost, what others exchange with it fails with its name.
 * Transfers of a task that was repeated belong under other keys than those of its first attempt.
 *
 * <p>Thread-safe.
 */
public final class WeftTransfers {
  private WeftTransfers() {}

  /**
   * This executor's end; the plugin closes it.
   *
   * @throws IllegalStateException where Weft's plugin is off
   */
  public static CrossHostTransfers transfers() {
    return ExecutorTransfers.running()
        .orElseThrow(
            () ->
                new IllegalStateException(
                    ("Weft has no transfers in this JVM. Is spark.plugins set to %s, is this a task"
                            + " on an executor, and does the driver's log say that Weft stays off?")
                        .formatted(Activation.PLUGIN)))
        .transfers();
  }

  /**
   * This executor's host: arrays in its memory.
   *
   * @throws IllegalStateException where Weft's plugin is off
   */
  public static DeviceId device() {
    return transfers().devices().get(ExecutorDirectory.HOST);
  }

  /**
   * This executor's GPU: arrays in its memory go to GPUs of others. Empty where the executor has
   * none that Weft can use; its log says why.
   *
   * @throws IllegalStateException where Weft's plugin is off
   */
  public static Optional<DeviceId> gpu() {
    List<DeviceId> devices = transfers().devices();
    return devices.size() > ExecutorDirectory.GPU
        ? Optional.of(devices.get(ExecutorDirectory.GPU))
        : Optional.empty();
  }

  /** The GPU of another executor, whether it has one or not. */
  public static DeviceId gpuOf(String executorId) {
    return new DeviceId(executorId, ExecutorDirectory.GPU);
  }
}
