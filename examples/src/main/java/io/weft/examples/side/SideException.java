package io.weft.examples.side;

import java.io.IOException;

/** A task of a side, or its whole process, failed. */
public final class SideException extends IOException {
  private static final long serialVersionUID = 1L;

  SideException(String message) {
    super(message);
  }

  SideException(String message, Throwable cause) {
    super(message, cause);
  }
}
