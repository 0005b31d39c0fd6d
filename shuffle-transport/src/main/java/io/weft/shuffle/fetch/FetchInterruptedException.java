package io.weft.shuffle.fetch;

import java.util.concurrent.CancellationException;

/**
 * Thrown if the reading thread is interrupted while it waits for blocks. No fetch failed, so the
 * caller reports no fetch failure to Spark. The thread's interrupt status is set.
 */
public final class FetchInterruptedException extends CancellationException {
  private static final long serialVersionUID = 1L;

  /** Creates an exception whose message names the awaited blocks. */
  public FetchInterruptedException(String message) {
    super(message);
  }
}
