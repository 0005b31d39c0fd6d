package io.weft.transfer;

import java.util.concurrent.CancellationException;

/**
 * The reading thread was interrupted while it waited for blocks. No fetch failed: Spark is not to
 * be told of one. The thread's interrupt status is set again.
 */
public final class FetchInterruptedException extends CancellationException {
  private static final long serialVersionUID = 1L;

  /** Says what was being waited for. */
  public FetchInterruptedException(String message) {
    super(message);
  }
}
