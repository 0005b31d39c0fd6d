package io.weft.collectives.host;

/** Provides the state of other ranks. */
@FunctionalInterface
interface StatusSource {
  /** The state of a rank; may wait until the rank has answered. */
  RankStatus status(int rank);
}
