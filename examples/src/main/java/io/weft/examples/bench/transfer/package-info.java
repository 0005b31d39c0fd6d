/**
 * {@code weft bench transfer}: what moving blocks and arrays between executors costs, each side of
 * a row in a process of its own, taking turns. The coordinator is one thread; whoever starts a
 * process closes it.
 */
package io.weft.examples.bench.transfer;
