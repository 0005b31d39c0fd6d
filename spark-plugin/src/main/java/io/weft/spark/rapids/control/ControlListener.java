package io.weft.spark.rapids.control;

/** Hears what happens on connections, on the transport's threads; must not block them. */
public interface ControlListener {
  /**
   * A client has connected; its messages follow.
   *
   * @throws IllegalArgumentException to refuse it; it is told the message
   */
  void greeted(ControlChannel channel, Hello hello);

  /** A message has come, in its order. */
  void heard(ControlChannel channel, ControlMessage message);

  /** A connection has ended, whoever opened it. Nothing is heard of it any more. */
  void ended(ControlChannel channel);
}
