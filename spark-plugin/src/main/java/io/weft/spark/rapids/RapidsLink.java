package io.weft.spark.rapids;

import io.weft.spark.rapids.ControlMessage.BootstrapRound;
import io.weft.spark.rapids.ControlService.ControlChannel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One end of a connection between two executors. Used by the event thread, except where a method
 * says otherwise. Owns the data lane and the channel.
 */
abstract class RapidsLink {
  private static final Logger LOG = LoggerFactory.getLogger(RapidsLink.class);

  private final long own;
  private final long peer;
  private final ControlChannel channel;
  private final DataLane lane;
  private final String ends;
  private String ended;

  /**
   * An end of an open connection.
   *
   * @param isClient whether this end fetches
   */
  RapidsLink(long own, long peer, ControlChannel channel, LaneSet lanes, boolean isClient) {
    this.own = own;
    this.peer = peer;
    this.channel = channel;
    String ends =
        isClient
            ? "executor %d, which fetches from executor %d".formatted(own, peer)
            : "executor %d, which serves executor %d".formatted(own, peer);
    this.ends = ends;
    this.lane =
        lanes.open(
            ends,
            isClient ? 0 : 1,
            "weft-rapids-data-" + (isClient ? own + "-from-" : own + "-to-") + peer,
            this::send);
  }

  /** The executor at the other end. Thread-safe. */
  final long peer() {
    return peer;
  }

  /** This executor. Thread-safe. */
  final long own() {
    return own;
  }

  final DataLane lane() {
    return lane;
  }

  final ControlChannel channel() {
    return channel;
  }

  /** Sends a message, unless the connection has ended. Thread-safe. */
  final void send(ControlMessage message) {
    channel.send(message);
  }

  /** Why the connection has ended; null while it has not. */
  final String ended() {
    return ended;
  }

  /** Handles a message of the peer. */
  final void handle(ControlMessage message) {
    if (ended != null) {
      return;
    }
    if (message instanceof BootstrapRound round) {
      lane.receive(round);
    } else if (!take(message)) {
      throw new IllegalArgumentException(
          "executor %d sent executor %d a message of the wrong kind: %s"
              .formatted(peer, own, message.getClass().getSimpleName()));
    }
  }

  /** Handles a message. Returns false if it is not for this kind of end. */
  abstract boolean take(ControlMessage message);

  /** Fails what has timed out. Called periodically. */
  abstract void expire();

  /** Ends the connection and all its transactions. Later calls do nothing. */
  final void end(String reason) {
    if (ended != null) {
      return;
    }
    ended = reason;
    LOG.info("The connection of {} ends: {}", ends, reason);
    channel.close();
    lane.close(reason);
    endAll(reason);
  }

  /** Ends all transactions with this reason. */
  abstract void endAll(String reason);
}
