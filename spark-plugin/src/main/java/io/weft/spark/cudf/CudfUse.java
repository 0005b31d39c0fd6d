package io.weft.spark.cudf;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaStream;
import io.weft.spark.gpu.DeviceWork;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Handles memory that failed work on cudf's stream may still use. Stateless. */
final class CudfUse {
  private static final Logger LOG = LoggerFactory.getLogger(CudfUse.class);

  private CudfUse() {}

  /**
   * Keeps memory until all work on the stream is complete. If nothing more can be enqueued, it
   * waits for the stream. If the stream does not complete either, or the device failed, the memory
   * is never freed, because the work could overwrite the data of a new owner.
   *
   * @param stream of cudf and this thread
   * @param keeper keeps the memory until an event has completed
   * @param cause why the work failed; failures of this call are added to it
   */
  static void end(
      String what, DeviceWork work, CudaStream stream, Consumer<Event> keeper, Throwable cause) {
    try {
      keeper.accept(work.lane().after(what, stream));
    } catch (RuntimeException e) {
      cause.addSuppressed(e);
      if (!isAtRest(work, stream, cause)) {
        LOG.warn("{}: the device may still use their memory, which is not freed", what);
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
