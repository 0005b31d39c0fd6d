package io.weft.collectives.symmetric;

/**
 * A wish for memory on all ranks, and the key under which it is found again.
 *
 * @param purpose who uses it for what, such as "all-to-all scratch"; two operators that run at the
 *     same time need two purposes, or one works with the other's contents
 * @param bytes at least this much; 0 or more
 */
public record CollectiveMemoryRequest(String purpose, long bytes) {
  public CollectiveMemoryRequest {
    if (purpose.isBlank()) {
      throw new IllegalArgumentException("memory that is to be found again needs a purpose");
    }
    if (bytes < 0) {
      throw new IllegalArgumentException(bytes + " bytes of collective memory");
    }
  }

  @Override
  public String toString() {
    return "\"" + purpose + "\" of " + bytes + " bytes";
  }
}
