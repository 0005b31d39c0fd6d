package io.weft.wire;

/** A message's bytes are not those that were sent: to send it once more may help. */
public final class DamagedMessageException extends WireException {
  private static final long serialVersionUID = 1L;

  DamagedMessageException(String message) {
    super(message);
  }
}
