/**
 * Sequences of collectives on fixed buffers, recorded once and replayed: the host's counterpart of
 * capturing a CUDA graph. A recording owns no buffers and no communicator; one thread replays at a
 * time, and all ranks together.
 */
package io.weft.collectives.replay;
