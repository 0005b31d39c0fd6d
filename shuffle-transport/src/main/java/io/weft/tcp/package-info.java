/**
 * Sends and receives blocks over Spark's network transport.
 *
 * <p>Runs on Netty's threads, which never wait. They answer requests and write received bytes to
 * the reader's memory. A server holds the map outputs of a stream until it is sent, declined or
 * expired, or its connection ends.
 */
package io.weft.tcp;
