package io.weft.shuffle.net;

import java.io.IOException;

/** Thrown if a message is damaged, of another version or not the expected one. */
public class WireException extends IOException {
  private static final long serialVersionUID = 1L;

  /** Creates an exception whose message names the wrong field. */
  public WireException(String message) {
    super(message);
  }

  /** A received message has a wrong checksum. A retry may help. */
  public static final class DamagedMessageException extends WireException {
    private static final long serialVersionUID = 1L;

    DamagedMessageException(String message) {
      super(message);
    }
  }
}
