package io.weft.collectives.host;

import java.util.List;

/** Gives the ranks that a wait is for. Called only when the wait is long. */
@FunctionalInterface
interface Awaited {
  /** Ranks of the communicator that have not done their part yet, in order. */
  List<Integer> ranks();
}
