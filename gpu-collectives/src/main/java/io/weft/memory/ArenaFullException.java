package io.weft.memory;

import java.io.IOException;

/**
 * An arena has no room for an allocation. The message names the use of each tier and the settings
 * to raise.
 */
public final class ArenaFullException extends IOException {
  private static final long serialVersionUID = 1L;

  ArenaFullException(String message) {
    super(message);
  }
}
