package io.weft.collectives.clique;

/** One member's view of a clique. A process may host several members of the same clique. */
record Side(CliqueKey key, int rank) {
  @Override
  public String toString() {
    return "rank " + rank + " of " + key;
  }
}
