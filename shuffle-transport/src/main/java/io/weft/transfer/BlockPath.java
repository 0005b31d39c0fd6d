package io.weft.transfer;

/** The path by which a block is read. */
enum BlockPath {
  OWN("in this executor's own memory"),
  SAME_HOST("in place, from shared memory"),
  REMOTE("over the network"),
  UNKNOWN("by no path, as its executor's address is unknown");

  private final String phrase;

  BlockPath(String phrase) {
    this.phrase = phrase;
  }

  /** The path in words, for a message. */
  String phrase() {
    return phrase;
  }
}
