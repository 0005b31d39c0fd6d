/**
 * Other executors, and the counters and events that all parts of the shuffle share: addresses and
 * GPUs of executors, and the rules that choose the path to their blocks and arrays.
 *
 * <p>Start with {@code PeerAddress}, {@code PathRules} and {@code ExchangeCounters}. Immutable
 * values and thread-safe caches. Nothing here has to be freed.
 */
package io.weft.shuffle.peer;
