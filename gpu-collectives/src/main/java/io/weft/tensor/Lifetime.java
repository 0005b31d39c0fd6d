package io.weft.tensor;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The state of a tensor's memory, which the tensor shares with its views: whether it is open, and
 * how it is freed.
 */
final class Lifetime {
  private final AutoCloseable release;
  private final AtomicBoolean closed = new AtomicBoolean();

  /**
   * @param release run once, by the first close
   */
  Lifetime(AutoCloseable release) {
    this.release = release;
  }

  boolean closed() {
    return closed.get();
  }

  /**
   * @param type the type for error messages
   */
  void close(TensorType type) {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    try {
      release.close();
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException("releasing a tensor " + type + " failed", e);
    }
  }
}
