package io.weft.device.cuda;

import java.util.Set;

/** Reports a failed call of the CUDA driver. */
public class CudaException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  private static final int OUT_OF_MEMORY = 2;

  /** After these errors every GPU call of the process fails until the process ends. */
  private static final Set<Integer> LOST =
      Set.of(46, 214, 700, 702, 710, 714, 715, 716, 717, 718, 719);

  private final int code;

  /**
   * Creates an exception.
   *
   * @param code the driver's number of the error
   * @param name the driver's name of the error
   * @param what the call and its place, for the message
   */
  public CudaException(int code, String name, String what) {
    super(what + " failed: " + name + " (" + code + ")" + advice(code));
    this.code = code;
  }

  private static String advice(int code) {
    return LOST.contains(code)
        ? "; this process has lost the GPU and must be restarted, see the Xid lines in the"
            + " kernel's log"
        : "";
  }

  /** Whether the only cause is a lack of device memory. */
  public boolean isOutOfMemory() {
    return code == OUT_OF_MEMORY;
  }
}
