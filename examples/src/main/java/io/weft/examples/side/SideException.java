package io.weft.examples.side;

import java.io.IOException;

/** A side failed: a task of it, or the whole process. */
public final class SideException extends IOException {
  private static final long serialVersionUID = 1L;

  SideException(String message) {
    super(message);
  }

  SideException(String message, Throwable cause) {
    super(message, cause);
  }
}
