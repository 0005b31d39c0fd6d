package io.weft.spark.collectives;

/** The way to the driver's meetings. Implementations are thread-safe. */
@FunctionalInterface
public interface MeetingPlace {
  /**
   * Asks the driver, which answers at once.
   *
   * @throws InterruptedException if the thread is interrupted
   * @throws Exception if no answer comes; asking again may help
   */
  MeetingAnswer ask(MeetingCall call) throws Exception;
}
