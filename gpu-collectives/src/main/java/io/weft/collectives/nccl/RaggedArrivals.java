package io.weft.collectives.nccl;

import io.weft.collectives.operation.RaggedLayout;
import java.util.List;

/**
 * The layouts and receive places of all ranks in a ragged all-to-all.
 *
 * @param layouts of each rank, without the offsets in its own send buffer
 * @param window the number of the shared window where all ranks receive; 0 if there is none
 * @param offsets where each rank receives in it, in bytes
 * @param receiveRows how many rows each rank has room for
 */
@SuppressWarnings("ArrayRecordComponent") // Made for one call.
record RaggedArrivals(List<RaggedLayout> layouts, long window, long[] offsets, long[] receiveRows) {
  boolean areShared() {
    return window != 0;
  }
}
