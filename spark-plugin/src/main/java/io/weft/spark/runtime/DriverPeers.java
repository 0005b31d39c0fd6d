package io.weft.spark.runtime;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerDirectory;
import io.weft.spark.runtime.Messages.Found;
import io.weft.spark.runtime.Messages.Lookup;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.api.plugin.PluginContext;

/**
 * Asks the driver for the addresses of executors. It retries until a timeout, because the driver
 * may be busy or may not have received an executor's announcement yet.
 *
 * <p>Thread-safe; blocks the calling task thread, outside locks.
 */
final class DriverPeers implements PeerDirectory {
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long LAST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);

  private final PluginContext driver;
  private final Duration timeout;

  DriverPeers(PluginContext driver, Duration timeout) {
    this.driver = driver;
    this.timeout = timeout;
  }

  @Override
  public PeerAddress lookup(String executorId) throws IOException {
    long deadline = System.nanoTime() + timeout.toNanos();
    long pause = FIRST_PAUSE_NANOS;
    Exception last = null;
    do {
      try {
        PeerAddress found = ask(executorId);
        if (found != null) {
          return found;
        }
      } catch (InterruptedException e) {
        throw interrupted(executorId);
      } catch (Exception e) {
        last = e;
      }
      pause(executorId, Math.min(pause, deadline - System.nanoTime()));
      pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
    } while (System.nanoTime() - deadline < 0);
    throw new IOException(
        "Executor %s asked the driver where executor %s is, and got %s for %d ms"
            .formatted(
                driver.executorID(),
                executorId,
                last == null ? "no address" : "no answer",
                timeout.toMillis()),
        last);
  }

  private PeerAddress ask(String executorId) throws Exception {
    return ((Found) MessageCodec.decode(driver.ask(MessageCodec.encode(new Lookup(executorId)))))
        .address();
  }

  private void pause(String executorId, long nanos) throws IOException {
    if (nanos > 0) {
      LockSupport.parkNanos(this, nanos);
    }
    if (Thread.currentThread().isInterrupted()) {
      throw interrupted(executorId);
    }
  }

  private InterruptedIOException interrupted(String executorId) {
    Thread.currentThread().interrupt();
    return new InterruptedIOException(
        "Executor %s was interrupted while it asked the driver where executor %s is"
            .formatted(driver.executorID(), executorId));
  }
}
