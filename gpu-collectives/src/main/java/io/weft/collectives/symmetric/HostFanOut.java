package io.weft.collectives.symmetric;

import io.weft.collectives.buffer.TypedBuffer;

/**
 * Multicast without hardware support. Each rank starts with the rank after itself, so their targets
 * differ.
 */
final class HostFanOut implements Multicast {
  private final Window window;

  HostFanOut(Window window) {
    this.window = window;
  }

  @Override
  public void write(TypedBuffer source, long offset) {
    for (int i = 1; i <= window.nranks(); i++) {
      window.put(source, (window.rank() + i) % window.nranks(), offset);
    }
  }

  @Override
  public void signal(int slot, int value) {
    for (int i = 1; i <= window.nranks(); i++) {
      window.signal((window.rank() + i) % window.nranks(), slot, value);
    }
  }

  @Override
  public String mechanism() {
    return "host fan-out";
  }
}
