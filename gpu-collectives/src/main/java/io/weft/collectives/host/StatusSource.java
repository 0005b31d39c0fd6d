package io.weft.collectives.host;

/** Where the state of other ranks can be asked for. */
@FunctionalInterface
interface StatusSource {
  /** The state of a rank; may take time until it has answered. */
  RankStatus status(int rank);
}
