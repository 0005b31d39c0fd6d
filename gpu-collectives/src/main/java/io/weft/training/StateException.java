package io.weft.training;

import java.io.IOException;

/** Reports that bytes are not a valid state: damaged, cut short, of another kind, or too new. */
class StateException extends IOException {
  private static final long serialVersionUID = 1L;

  /** Creates an exception with the reason. */
  public StateException(String message) {
    super(message);
  }
}
