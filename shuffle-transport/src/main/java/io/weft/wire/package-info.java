/**
 * Encodes and decodes the messages that executors exchange over the network. Messages have a
 * version. Decoders check every length before they use it. Stateless; messages are immutable.
 */
package io.weft.wire;
