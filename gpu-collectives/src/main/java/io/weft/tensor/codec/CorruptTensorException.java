package io.weft.tensor.codec;

/** Bytes are not an encoded tensor; the message says what is wrong. */
public final class CorruptTensorException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Creates an exception with a description of the error. */
  public CorruptTensorException(String message) {
    super(message);
  }

  CorruptTensorException(String message, Throwable cause) {
    super(message, cause);
  }
}
