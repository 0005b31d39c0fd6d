package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;

/**
 * The host's communicators beside those of NCCL, of the same ranks.
 *
 * @param collectives where ranks agree on collectives
 * @param pairs where they compare sends with receives
 */
record HostCommunicatorPair(Communicator collectives, Communicator pairs) {}
