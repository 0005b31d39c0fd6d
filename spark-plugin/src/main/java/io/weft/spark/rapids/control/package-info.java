/**
 * The control messages of the shuffle transport: small messages over Spark's network transport, in
 * both directions of a connection that the fetching executor opens.
 *
 * <p>Messages of a connection arrive in order, on the transport's threads, which must not be
 * blocked. {@link io.weft.spark.rapids.control.ControlService} owns the server, the connections and
 * their threads.
 */
package io.weft.spark.rapids.control;
