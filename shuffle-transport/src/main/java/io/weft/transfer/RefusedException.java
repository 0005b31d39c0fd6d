package io.weft.transfer;

import java.io.IOException;

/** A peer answered that it cannot send a block; the message has its reason. */
final class RefusedException extends IOException {
  private static final long serialVersionUID = 1L;

  private final int retryAfterMillis;

  /**
   * A refusal.
   *
   * @param retryAfterMillis when the peer wants to be asked again; 0: never
   */
  RefusedException(String reason, int retryAfterMillis) {
    super(reason);
    this.retryAfterMillis = retryAfterMillis;
  }

  int retryAfterMillis() {
    return retryAfterMillis;
  }
}
