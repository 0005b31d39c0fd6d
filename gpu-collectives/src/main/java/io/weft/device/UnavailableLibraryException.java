package io.weft.device;

/** A library of the machine cannot be used; the message names it and the reason. */
public class UnavailableLibraryException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public UnavailableLibraryException(String message) {
    super(message);
  }

  public UnavailableLibraryException(String message, Throwable cause) {
    super(message, cause);
  }
}
