package io.weft.transfers;

/**
 * A transfer failed; the message names both of its ends. The cause says more where there is one.
 */
public class TransferException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public TransferException(String message) {
    super(message);
  }

  public TransferException(String message, Throwable cause) {
    super(message, cause);
  }

  /** There was no memory to receive an array; nothing was started. */
  public static final class NoReceiveMemoryException extends TransferException {
    private static final long serialVersionUID = 1L;

    /** Creates an exception; the message names the array and the memory. */
    public NoReceiveMemoryException(String message, Throwable cause) {
      super(message, cause);
    }
  }
}
