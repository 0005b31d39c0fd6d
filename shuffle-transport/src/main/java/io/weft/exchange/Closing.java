package io.weft.exchange;

import com.google.errorprone.annotations.CanIgnoreReturnValue;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Closes the parts of an exchange in the reverse order of their creation. Thread-safe. */
final class Closing implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Closing.class);

  private final ConcurrentLinkedDeque<AutoCloseable> parts = new ConcurrentLinkedDeque<>();

  /** Takes ownership of a part. */
  @CanIgnoreReturnValue
  <T extends AutoCloseable> T add(T part) {
    parts.push(part);
    return part;
  }

  /** Closes every part once, even if closing another part fails. */
  @Override
  public void close() {
    AutoCloseable part = parts.poll();
    while (part != null) {
      close(part);
      part = parts.poll();
    }
  }

  private static void close(AutoCloseable part) {
    try {
      part.close();
    } catch (Exception e) {
      LOG.warn("Closing {} failed", part, e);
    }
  }
}
