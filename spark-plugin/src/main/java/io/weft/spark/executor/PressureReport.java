package io.weft.spark.executor;

import io.weft.spark.message.MessageCodec;
import io.weft.spark.message.Messages.MemoryPressure;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports to the driver that this executor's shared memory is full, so that it frees unused
 * shuffles. The driver frees them later, if it can. The current allocation does not wait for it.
 *
 * <p>Thread-safe. It never blocks, and reports at most once every few seconds.
 */
final class PressureReport implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(PressureReport.class);
  private static final long PAUSE_NANOS = Duration.ofSeconds(5).toNanos();

  private final PluginContext context;
  private final AtomicLong nextNanos = new AtomicLong(System.nanoTime());

  PressureReport(PluginContext context) {
    this.context = context;
  }

  @Override
  public void run() {
    long next = nextNanos.get();
    long now = System.nanoTime();
    if (now - next < 0 || !nextNanos.compareAndSet(next, now + PAUSE_NANOS)) {
      return;
    }
    try {
      context.send(MessageCodec.encode(new MemoryPressure(context.executorID())));
    } catch (IOException | RuntimeException e) {
      LOG.debug("The report that memory is full did not reach the driver", e);
    }
  }
}
