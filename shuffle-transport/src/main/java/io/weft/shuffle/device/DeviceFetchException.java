package io.weft.shuffle.device;

import io.weft.transfers.TransferException.NoReceiveMemoryException;
import java.io.IOException;

/**
 * The fetch of a device block failed. The message names the block, both executors and the cause.
 */
public final class DeviceFetchException extends IOException {
  private static final long serialVersionUID = 1L;

  private final transient DeviceBlock block;

  /** Creates an exception for a block; the message names it and both executors. */
  public DeviceFetchException(DeviceBlock block, String message, Throwable cause) {
    super(message, cause);
    this.block = block;
  }

  /** Whether this device had no memory to receive the blocks. */
  public boolean isShortOfMemory() {
    return getCause() instanceof NoReceiveMemoryException;
  }

  /** The first block that was not delivered. */
  public DeviceBlock block() {
    return block;
  }
}
