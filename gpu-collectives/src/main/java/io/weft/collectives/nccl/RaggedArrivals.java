package io.weft.collectives.nccl;

import io.weft.collectives.operation.RaggedLayout;
import java.util.List;

/**
 * What all ranks know of each other in a ragged all-to-all.
 *
 * @param layouts of each rank, without the offsets in its own send buffer
 * @param window the number of the shared window that all receive in; 0 where there is none
 * @param offsets where each receives there, in bytes
 * @param receiveRows how many rows each has room for
 */
@SuppressWarnings("ArrayRecordComponent") // Made for one call.
record RaggedArrivals(List<RaggedLayout> layouts, long window, long[] offsets, long[] receiveRows) {
  boolean areShared() {
    return window != 0;
  }
}
