package io.weft.collectives.host;

/** The checks that a waiting rank makes. */
interface Watch {
  /**
   * Checks whether this wait can still succeed, and publishes which rank this one waits for.
   *
   * @throws io.weft.collectives.fault.CollectiveException when a rank failed, ended or closed, this
   *     thread was interrupted, or the deadline has passed
   */
  void look(Awaited awaited);

  /** Called at the end of a wait in which {@link #look} was called. */
  void stopLooking();
}
