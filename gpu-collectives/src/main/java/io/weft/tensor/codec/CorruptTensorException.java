package io.weft.tensor.codec;

/** Bytes that are no encoded tensor; the message says what is wrong with them. */
public final class CorruptTensorException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Says what is wrong with the bytes. */
  public CorruptTensorException(String message) {
    super(message);
  }

  CorruptTensorException(String message, Throwable cause) {
    super(message, cause);
  }
}
