package io.weft.collectives.host;

/** What a link carries; each kind has links of its own, so neither holds up the other. */
enum Traffic {
  /** What users send to one rank. */
  PAIRS(0),
  /** The inner messages of collectives. */
  COLLECTIVES(1);

  static final int COUNT = 2;

  private final int number;

  Traffic(int number) {
    this.number = number;
  }

  int number() {
    return number;
  }

  int index(int ranks, int peer) {
    return number * ranks + peer;
  }
}
