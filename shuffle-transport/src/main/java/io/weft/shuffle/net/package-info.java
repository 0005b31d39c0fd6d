/**
 * Sends and receives blocks over Spark's network transport: messages, server, client and
 * compression.
 *
 * <p>Start with {@code BlockServer}, {@code BlockClient} and the message {@code OpenBlocks}.
 * Messages have a version, and decoders check every length before they use it. Netty's threads
 * answer requests and write received bytes to the reader's memory; they never wait. A server holds
 * the map outputs of a stream until it is sent, declined or expired, or its connection ends.
 */
package io.weft.shuffle.net;
