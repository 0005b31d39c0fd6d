package io.weft.device.cuda;

/** There is not as much memory now, and there may be later: others have to give some back first. */
public final class NoRoomException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  NoRoomException(String message, Throwable cause) {
    super(message, cause);
  }
}
