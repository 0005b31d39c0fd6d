package io.weft.transfer;

import java.io.IOException;

/** Thrown if a peer refuses a request. The message has its reason. */
final class RefusedException extends IOException {
  private static final long serialVersionUID = 1L;

  private final int retryAfterMillis;

  /**
   * Creates an exception.
   *
   * @param retryAfterMillis delay before a retry; 0 for no retry
   */
  RefusedException(String reason, int retryAfterMillis) {
    super(reason);
    this.retryAfterMillis = retryAfterMillis;
  }

  int retryAfterMillis() {
    return retryAfterMillis;
  }
}
