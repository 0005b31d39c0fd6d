package io.weft.table;

import io.weft.device.Event;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;

/** What the copies of a run, up and down, have in common. Stateless. */
final class RunCopy {
  private RunCopy() {}

  /** Memory for a table; one without columns has some too. */
  static long bytes(TableLayout layout) {
    return Math.max(TableLayout.ALIGNMENT, layout.bytes());
  }

  /** Enqueues a copy into memory that was made for it, which is given back where that fails. */
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
