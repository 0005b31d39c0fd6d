/**
 * Blocks over the network, on Spark's own transport.
 *
 * <p>Runs on Netty's threads, which never wait: requests are answered, and bytes written to the
 * reader's memory, as they come. A server holds the map outputs of a stream until it is sent,
 * declined or expired, or its connection ends; the reader's memory is its transfer's.
 */
package io.weft.tcp;
