package io.weft.catalog;

import java.io.IOException;

/**
 * Thrown if a segment of a peer on this host exists but cannot be mapped. The peer can send its
 * bytes over the network instead.
 */
public final class MappingFailedException extends IOException {
  private static final long serialVersionUID = 1L;

  MappingFailedException(String message, Throwable cause) {
    super(message, cause);
  }
}
