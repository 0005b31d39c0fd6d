package io.weft.wire;

/** A received message has a wrong checksum. A retry may help. */
public final class DamagedMessageException extends WireException {
  private static final long serialVersionUID = 1L;

  DamagedMessageException(String message) {
    super(message);
  }
}
