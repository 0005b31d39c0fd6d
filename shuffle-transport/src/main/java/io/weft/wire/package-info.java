/**
 * The messages that executors exchange over the network, as bytes: versioned, every length checked
 * before it is believed. Stateless; messages are immutable.
 */
package io.weft.wire;
