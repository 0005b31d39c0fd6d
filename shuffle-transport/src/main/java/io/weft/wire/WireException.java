package io.weft.wire;

import java.io.IOException;

/** A message is damaged, of another version or not what was expected. */
public class WireException extends IOException {
  private static final long serialVersionUID = 1L;

  /** Says which field of which message is wrong. */
  public WireException(String message) {
    super(message);
  }
}
