/**
 * Sequences of collectives on fixed buffers, recorded once and replayed: the host's counterpart of
 * capturing a CUDA graph, and where a communicator's device runs graphs, just that. A recording
 * owns no buffers and no communicator, but keeps the buffers of a graph; it is closed by who made
 * it. One thread replays at a time, and all ranks together.
 */
package io.weft.collectives.replay;
