package io.weft.device.cuda;

/** There is not enough memory now, but other code may free some later. */
public final class NoRoomException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  NoRoomException(String message, Throwable cause) {
    super(message, cause);
  }
}
