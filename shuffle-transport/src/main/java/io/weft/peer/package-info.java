/**
 * Other executors: their addresses and GPUs, and the rules that choose the path to their blocks and
 * arrays. Immutable values and a thread-safe cache of addresses.
 */
package io.weft.peer;
