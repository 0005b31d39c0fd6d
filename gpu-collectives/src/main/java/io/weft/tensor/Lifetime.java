package io.weft.tensor;

import java.util.concurrent.atomic.AtomicBoolean;

/** Shared by a tensor and its views: whether its memory is still there, and how it is freed. */
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
   * @param type for errors
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
