package io.weft.spark.cudf;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaStream;
import io.weft.spark.gpu.DeviceWork;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What becomes of memory that work on cudf's stream may use, where that work failed. Stateless. */
final class CudfUse {
  private static final Logger LOG = LoggerFactory.getLogger(CudfUse.class);

  private CudfUse() {}

  /**
   * Keeps memory until the stream is done with all that is on it. Where nothing can be enqueued
   * behind that, this waits for it; where it does not end either, or the device failed, the memory
   * is never given back, as another owner would find it written.
   *
   * @param stream of cudf and this thread
   * @param keeper keeps the memory until an event has ended
   * @param cause why the work failed; what fails here is added to it
   */
  static void end(
      String what, DeviceWork work, CudaStream stream, Consumer<Event> keeper, Throwable cause) {
    try {
      keeper.accept(work.lane().after(what, stream));
    } catch (RuntimeException e) {
      cause.addSuppressed(e);
      if (!isAtRest(work, stream, cause)) {
        LOG.warn("{}: the device may still use their memory, which is not given back", what);
        keeper.accept(new HostEvent(what + ", whose end is not known"));
      }
    }
  }

  private static boolean isAtRest(DeviceWork work, CudaStream stream, Throwable cause) {
    try {
      return stream.awaitRest(work.deadline());
    } catch (RuntimeException e) {
      cause.addSuppressed(e);
      return false;
    }
  }
}
