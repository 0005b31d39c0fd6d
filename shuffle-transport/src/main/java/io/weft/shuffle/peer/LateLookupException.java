package io.weft.shuffle.peer;

import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * The addresses of executors were not found in time. The executors and their blocks may be good, so
 * this is no fetch failure.
 */
public final class LateLookupException extends UncheckedIOException {
  private static final long serialVersionUID = 1;

  /** Creates an exception with the message of its cause. */
  public LateLookupException(IOException cause) {
    super(cause.getMessage(), cause);
  }
}
