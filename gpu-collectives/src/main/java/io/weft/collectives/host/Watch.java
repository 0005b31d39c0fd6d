package io.weft.collectives.host;

/** What a waiting rank keeps an eye on. */
interface Watch {
  /**
   * Looks whether waiting on makes sense, and tells others whom this rank waits for.
   *
   * @throws io.weft.collectives.fault.CollectiveException when it does not: somebody failed, ended
   *     or closed, this thread was interrupted, or the deadline has passed
   */
  void look(Awaited awaited);

  /** The wait in which there was a look is over. */
  void stopLooking();
}
