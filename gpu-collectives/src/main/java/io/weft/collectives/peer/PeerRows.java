package io.weft.collectives.peer;

import io.weft.collectives.operation.RaggedLayout;

/**
 * Rows that one rank writes into the memory of all.
 *
 * @param send address of its rows on its device
 * @param sendRows how many there are
 * @param rowBytes of one row, the same on all ranks
 * @param layout which rows go where
 * @param offsets where each rank receives, in bytes from the start of its memory
 * @param receiveRows how many rows fit there
 */
@SuppressWarnings("ArrayRecordComponent") // Made for one call.
public record PeerRows(
    long send,
    long sendRows,
    long rowBytes,
    RaggedLayout layout,
    long[] offsets,
    long[] receiveRows) {}
