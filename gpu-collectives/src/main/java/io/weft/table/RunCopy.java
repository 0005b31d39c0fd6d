package io.weft.table;

import io.weft.device.Event;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;

/** Common parts of copies of a table to and from a device. Stateless. */
final class RunCopy {
  private RunCopy() {}

  /** The bytes to allocate for a table; more than 0 even without columns. */
  static long bytes(TableLayout layout) {
    return Math.max(TableLayout.ALIGNMENT, layout.bytes());
  }

  /** Enqueues a copy into newly allocated memory. If that fails, the memory is freed. */
  static Event submit(CudaLane lane, String what, CudaMemory made, Lane.Work copy, Event... after) {
    try {
      Event copied = lane.submit(what, copy, after);
      made.usedUntil(copied);
      return copied;
    } catch (RuntimeException e) {
      made.close();
      throw e;
    }
  }
}
