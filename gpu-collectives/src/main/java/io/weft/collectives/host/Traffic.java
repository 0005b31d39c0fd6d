package io.weft.collectives.host;

/** The kinds of messages. Each kind has its own links, so neither delays the other. */
enum Traffic {
  /** The sends and receives of users. */
  PAIRS(0),
  /** The internal messages of collectives. */
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
