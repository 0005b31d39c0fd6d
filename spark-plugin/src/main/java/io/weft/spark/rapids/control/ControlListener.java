package io.weft.spark.rapids.control;

/** Gets the events of connections. Runs on the transport's threads and must not block them. */
public interface ControlListener {
  /**
   * A client has connected; its messages follow.
   *
   * @throws IllegalArgumentException to refuse it; the client gets the message
   */
  void greeted(ControlChannel channel, Hello hello);

  /** A message has arrived. Messages of a connection come in order. */
  void heard(ControlChannel channel, ControlMessage message);

  /** A connection has ended. No event of it follows. */
  void ended(ControlChannel channel);
}
