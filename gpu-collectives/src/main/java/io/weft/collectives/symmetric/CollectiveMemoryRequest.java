package io.weft.collectives.symmetric;

/**
 * A request for memory on all ranks, with the key of its cache entry.
 *
 * @param purpose names the user and the use, such as "all-to-all scratch"; two operators that run
 *     at the same time need two purposes, or one overwrites the contents of the other
 * @param bytes the minimum size, 0 or more
 */
record CollectiveMemoryRequest(String purpose, long bytes) {
  public CollectiveMemoryRequest {
    if (purpose.isBlank()) {
      throw new IllegalArgumentException("cached memory needs a purpose");
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
