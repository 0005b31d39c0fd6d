package io.weft.collectives.clique;

/** One member's side of a clique: a process may host several members of the same one. */
record Side(CliqueKey key, int rank) {
  @Override
  public String toString() {
    return "rank " + rank + " of " + key;
  }
}
