package io.weft.spark.sql;

import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.TaskContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The GPU of the executor that runs a task, if it is usable. Thread-safe. */
final class DeviceHere {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceHere.class);
  private static final AtomicReference<String> SAID = new AtomicReference<>("");

  private DeviceHere() {}

  /**
   * Opens the GPU on the first call and waits for the task's turn to use it. Returns empty if there
   * is no usable GPU, and logs the reason once.
   */
  static Optional<DeviceExchange> find() {
    ExecutorGpu gpu = ExecutorGpu.current();
    String obstacle = gpu.exchangeObstacle();
    if (obstacle.isEmpty()) {
      DeviceExchange device = gpu.exchange();
      TaskContext context = TaskContext.get();
      if (context != null) {
        device.admit(context);
      }
      return Optional.of(device);
    }
    if (!SAID.getAndSet(obstacle).equals(obstacle)) {
      LOG.info("Batches for GPUs stay on the host: {}", obstacle);
    }
    return Optional.empty();
  }
}
