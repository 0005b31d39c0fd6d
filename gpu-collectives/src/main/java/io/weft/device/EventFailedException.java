package io.weft.device;

/** The work of an event failed; the cause says why. */
public class EventFailedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public EventFailedException(String what, Throwable cause) {
    super(what + " failed: " + cause.getMessage(), cause);
  }
}
