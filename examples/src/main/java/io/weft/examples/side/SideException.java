package io.weft.examples.side;

import java.io.IOException;
import java.util.stream.Collectors;

/** A task of a side, or its whole process, failed. */
public final class SideException extends IOException {
  private static final long serialVersionUID = 1L;
  private static final int SUMMARY_LINES = 2;

  SideException(String message) {
    super(message);
  }

  SideException(String message, Throwable cause) {
    super(message, cause);
  }

  /** Returns the first lines of the message: what failed where, and the exception. */
  public String summary() {
    return getMessage().lines().limit(SUMMARY_LINES).collect(Collectors.joining(" "));
  }
}
