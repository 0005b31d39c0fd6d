package io.weft.catalog;

import java.io.IOException;

/**
 * A segment of a peer on this host is there but cannot be mapped; its bytes can be sent instead.
 */
public final class MappingFailedException extends IOException {
  private static final long serialVersionUID = 1L;

  MappingFailedException(String message, Throwable cause) {
    super(message, cause);
  }
}
