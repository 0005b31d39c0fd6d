package io.weft.catalog;

import java.io.IOException;

/** Thrown if an index file is damaged, of another version or of another map output. */
public final class CorruptIndexException extends IOException {
  private static final long serialVersionUID = 1L;

  CorruptIndexException(String message) {
    super(message);
  }
}
