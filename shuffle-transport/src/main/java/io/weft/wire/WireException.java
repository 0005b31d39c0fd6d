package io.weft.wire;

import java.io.IOException;

/** Thrown if a message is damaged, of another version or not the expected one. */
public class WireException extends IOException {
  private static final long serialVersionUID = 1L;

  /** Creates an exception whose message names the wrong field. */
  public WireException(String message) {
    super(message);
  }
}
