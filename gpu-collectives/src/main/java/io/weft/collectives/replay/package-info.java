/**
 * Sequences of collectives on fixed buffers, recorded once and replayed many times. This is the
 * host's counterpart of capturing a CUDA graph; if a communicator's device runs graphs, a recording
 * is one. A recording owns no buffers and no communicator, but keeps the buffers of a graph. Its
 * creator closes it. One thread replays at a time, on all ranks together.
 */
package io.weft.collectives.replay;
