package io.weft.collectives.peer;

import io.weft.collectives.operation.RaggedLayout;

/**
 * Rows that one rank writes into the memory of all.
 *
 * @param send device address of its rows
 * @param sendRows the number of its rows
 * @param rowBytes of one row, equal on all ranks
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
