package io.weft.transfer;

import java.io.IOException;

/** A peer answered that it cannot send a block; the message has its reason. */
final class RefusedException extends IOException {
  private static final long serialVersionUID = 1L;

  RefusedException(String reason) {
    super(reason);
  }
}
