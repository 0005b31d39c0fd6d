package io.weft.spark.runtime;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerDirectory;
import io.weft.shuffle.store.ExecutorFolder;
import io.weft.spark.runtime.Messages.Found;
import io.weft.spark.runtime.Messages.Lookup;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.util.RpcUtils;

/**
 * Asks the driver for the addresses of executors, all in one message. If the driver does not
 * answer, it asks again until a timeout, because the driver may be busy.
 *
 * <p>Thread-safe; blocks the calling task thread, outside locks.
 */
public final class DriverPeers implements PeerDirectory {
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long LAST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);
  private static final int MAX_NAMED = 3;

  private final PluginContext driver;
  private final String bootId;
  private final Duration timeout;

  /**
   * Creates a directory.
   *
   * @param bootId of this executor's kernel
   * @param timeout after which no further request is sent
   */
  public DriverPeers(PluginContext driver, String bootId, Duration timeout) {
    this.driver = driver;
    this.bootId = bootId;
    this.timeout = timeout;
  }

  /** Creates a directory that asks for twice Spark's {@code spark.rpc.askTimeout}. */
  static DriverPeers of(PluginContext driver) {
    long oneAsk = RpcUtils.askRpcTimeout(driver.conf()).duration().toMillis();
    return new DriverPeers(
        driver, ExecutorFolder.currentBootId(), Duration.ofMillis(oneAsk).multipliedBy(2));
  }

  @Override
  public Map<String, PeerAddress> lookup(Set<String> executorIds) throws IOException {
    long deadline = System.nanoTime() + timeout.toNanos();
    long pause = FIRST_PAUSE_NANOS;
    Exception last;
    do {
      try {
        return ask(executorIds);
      } catch (InterruptedException e) {
        throw interrupted(executorIds);
      } catch (Exception e) {
        last = e;
      }
      pause(executorIds, Math.min(pause, deadline - System.nanoTime()));
      pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
    } while (System.nanoTime() - deadline < 0);
    throw new IOException(
        ("Executor %s asked the driver for the addresses of %s and got no answer for %d ms (twice"
                + " spark.rpc.askTimeout): %s")
            .formatted(driver.executorID(), names(executorIds), timeout.toMillis(), last),
        last);
  }

  private Map<String, PeerAddress> ask(Set<String> executorIds) throws Exception {
    Lookup request = new Lookup(bootId, List.copyOf(executorIds));
    Found answer = (Found) MessageCodec.ask(driver, request);
    Map<String, PeerAddress> found = new HashMap<>();
    answer.addresses().forEach(address -> found.put(address.executorId(), address));
    return found;
  }

  private void pause(Set<String> executorIds, long nanos) throws IOException {
    if (nanos > 0) {
      LockSupport.parkNanos(this, nanos);
    }
    if (Thread.currentThread().isInterrupted()) {
      throw interrupted(executorIds);
    }
  }

  private InterruptedIOException interrupted(Set<String> executorIds) {
    Thread.currentThread().interrupt();
    return new InterruptedIOException(
        "Executor %s was interrupted while it asked the driver for the addresses of %s"
            .formatted(driver.executorID(), names(executorIds)));
  }

  /** For example "executors 1, 2, 3 and 40 others". */
  private static String names(Set<String> executorIds) {
    List<String> some = executorIds.stream().sorted().limit(MAX_NAMED).toList();
    int others = executorIds.size() - some.size();
    return (executorIds.size() == 1 ? "executor " : "executors ")
        + String.join(", ", some)
        + (others == 0 ? "" : " and " + others + " others");
  }
}
