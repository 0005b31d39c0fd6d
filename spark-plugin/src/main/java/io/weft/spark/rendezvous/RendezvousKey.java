package io.weft.spark.rendezvous;

import java.io.Serializable;
import java.util.List;

/** Names the group of a rendezvous. Implementations are immutable and compare by value. */
public interface RendezvousKey extends Serializable {
  /**
   * The executor ids of the members, by rank. Empty where the key does not name executors; then the
   * loss of an executor does not end the rendezvous.
   */
  List<String> executors();
}
