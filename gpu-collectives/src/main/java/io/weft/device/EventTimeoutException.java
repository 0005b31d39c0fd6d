package io.weft.device;

/** A wait for an event reached its deadline; the work may still end later. */
public class EventTimeoutException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public EventTimeoutException(String message) {
    super(message);
  }
}
