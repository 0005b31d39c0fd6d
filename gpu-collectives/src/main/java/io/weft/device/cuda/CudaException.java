package io.weft.device.cuda;

import java.util.Set;

/** A call of the CUDA driver failed. */
public class CudaException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final int OUT_OF_MEMORY = 2;

  /** After these every call of the process on the GPU fails: nothing but its end helps. */
  private static final Set<Integer> LOST =
      Set.of(46, 214, 700, 702, 710, 714, 715, 716, 717, 718, 719);

  private final int code;

  /**
   * A failure.
   *
   * @param code the driver's number for it
   * @param name the driver's name for it
   * @param what the call and where, for the message
   */
  public CudaException(int code, String name, String what) {
    super(what + " failed: " + name + " (" + code + ")" + advice(code));
    this.code = code;
  }

  private static String advice(int code) {
    return LOST.contains(code)
        ? "; this process has lost the GPU and has to be restarted, Xid lines in the kernel's log"
            + " tell more"
        : "";
  }

  /** Whether it fails only for lack of memory on the device. */
  public boolean isOutOfMemory() {
    return code == OUT_OF_MEMORY;
  }

  /** The driver's number, such as 2 for CUDA_ERROR_OUT_OF_MEMORY. */
  public int code() {
    return code;
  }
}
