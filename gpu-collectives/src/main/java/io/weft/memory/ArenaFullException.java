package io.weft.memory;

import java.io.IOException;

/** Neither shared memory nor disk has room; the message names the use of both and what to raise. */
public final class ArenaFullException extends IOException {
  private static final long serialVersionUID = 1L;

  ArenaFullException(String message) {
    super(message);
  }
}
