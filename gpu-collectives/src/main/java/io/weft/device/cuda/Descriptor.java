package io.weft.device.cuda;

import java.util.concurrent.atomic.AtomicBoolean;

/** A file descriptor of this process, which is closed once. Thread-safe. */
public final class Descriptor implements AutoCloseable {
  private final int number;
  private final AtomicBoolean closed = new AtomicBoolean();

  private Descriptor(int number) {
    this.number = number;
  }

  /** Takes ownership of a descriptor. */
  public static Descriptor of(int number) {
    if (number < 0) {
      throw new IllegalArgumentException(number + " is not a descriptor");
    }
    LibcFunctions.load();
    return new Descriptor(number);
  }

  /**
   * Its number in this process.
   *
   * @throws IllegalStateException when it was closed
   */
  public int number() {
    if (closed.get()) {
      throw new IllegalStateException("descriptor " + number + " was closed");
    }
    return number;
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      // Linux closes the descriptor even if it reports an error.
      int unused = LibcFunctions.close(number);
    }
  }

  @Override
  public String toString() {
    return "descriptor " + number;
  }
}
