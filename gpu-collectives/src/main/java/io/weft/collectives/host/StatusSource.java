package io.weft.collectives.host;

/** Where the state of other ranks can be asked for. */
@FunctionalInterface
interface StatusSource {
  /** The state of a rank; takes at most about a second. */
  RankStatus status(int rank);
}
