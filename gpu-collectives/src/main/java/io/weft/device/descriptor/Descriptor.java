package io.weft.device.descriptor;

import java.util.concurrent.atomic.AtomicBoolean;

/** A descriptor of this process, which is closed once. Thread-safe. */
public final class Descriptor implements AutoCloseable {
  private final int number;
  private final AtomicBoolean closed = new AtomicBoolean();

  private Descriptor(int number) {
    this.number = number;
  }

  /** Takes over a descriptor that nobody else closes. */
  public static Descriptor of(int number) {
    if (number < 0) {
      throw new IllegalArgumentException(number + " is no descriptor");
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
      // Linux has let go of it also where it reports an error.
      int unused = LibcFunctions.close(number);
    }
  }

  @Override
  public String toString() {
    return "descriptor " + number;
  }
}
