package io.weft.device.cuda;

/** A call of the CUDA driver failed. */
public class CudaException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int code;

  /**
   * A failure.
   *
   * @param code the driver's number for it
   * @param name the driver's name for it
   * @param what the call and where, for the message
   */
  public CudaException(int code, String name, String what) {
    super(what + " failed: " + name + " (" + code + ")");
    this.code = code;
  }

  /** The driver's number, such as 2 for CUDA_ERROR_OUT_OF_MEMORY. */
  public int code() {
    return code;
  }
}
