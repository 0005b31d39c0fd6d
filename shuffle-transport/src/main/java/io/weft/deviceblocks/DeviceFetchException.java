package io.weft.deviceblocks;

import java.io.IOException;

/** A block on a device could not be had. The message names it, both executors, and what failed. */
public final class DeviceFetchException extends IOException {
  private static final long serialVersionUID = 1L;

  private final transient DeviceBlock block;

  DeviceFetchException(DeviceBlock block, String message, Throwable cause) {
    super(message, cause);
    this.block = block;
  }

  /** The first block that was not delivered. */
  public DeviceBlock block() {
    return block;
  }
}
