package io.weft.spark.gpu.cudf;

import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.NativeDepsLoader;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.Table;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaStream;
import io.weft.shuffle.device.DeviceTable;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.DeviceWork;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.spark.sql.types.StructType;

/**
 * One call of a cudf function.
 *
 * @param schema of the batch
 */
record CudfCall(StructType schema, CudfFunction function) {
  /**
   * Makes a Weft table from a batch.
   *
   * @param start runs if cudf's memory was not initialised
   * @throws Exception which fails the task
   */
  DeviceTable of(DeviceTable batch, CudfStart start, DeviceWork work) throws Exception {
    CudaStream stream = CudfRuntime.stream(work.lane().stream().device(), start, work.deadline());
    // cudf counts nulls of the batch, and this thread waits for that without a deadline.
    batch.ready().await(work.deadline());
    try {
      return applied(batch, work, stream);
    } catch (Throwable e) {
      // A failed call may have enqueued work that reads the batch.
      work.keepAfterFailure("cudf work on a batch", stream, batch::usedUntil, e);
      throw e;
    }
  }

  private DeviceTable applied(DeviceTable batch, DeviceWork work, CudaStream stream)
      throws Exception {
    DeviceTable packed = null;
    try {
      try (CudfView view = CudfView.of(batch, schema);
          Table made = made(view.table())) {
        packed =
            CudfResult.copyOf(made, work, stream)
                .pack(() -> work.lane().after("a table of cudf", stream));
      }
      return packed;
    } catch (Throwable e) {
      if (packed != null) {
        packed.close();
      }
      throw e;
    }
  }

  private Table made(Table batch) throws Exception {
    Table made = function.apply(batch);
    if (made == null) {
      throw new IllegalStateException("a function on batches of cudf returned no table");
    }
    return made;
  }

  /**
   * cudf in this process: whether it can work, and on which stream. It must be checked before any
   * other call of cudf, because cudf ends the process if it cannot continue. Thread-safe.
   */
  static final class CudfRuntime {
    private static final ReentrantLock STARTING = new ReentrantLock();

    private CudfRuntime() {}

    /**
     * Returns the stream of the calling thread on which cudf works.
     *
     * @param device the device that cudf must use; becomes the calling thread's current device
     * @param start runs if cudf's memory was not initialised
     * @throws IllegalStateException if cudf cannot work here, with the reason
     */
    static CudaStream stream(CudaDevice device, CudfStart start, Deadline deadline)
        throws Exception {
      if (!NativeDepsLoader.libraryLoaded()) {
        throw new IllegalStateException(
            "cudf's native library cannot be loaded in this executor; its log says why. Add"
                + " ai.rapids:cudf with the classifier of this machine's CUDA, such as cuda13, to"
                + " the class path of executors");
      }
      // cudf uses the device that is current when its memory is initialised.
      device.use();
      if (!Rmm.isInitialized()) {
        start(start, deadline);
      }
      requireSame(device);
      return CudaStream.borrowed(device, "of cudf", Cuda.DEFAULT_STREAM.getStream());
    }

    private static void start(CudfStart start, Deadline deadline) throws Exception {
      if (!STARTING.tryLock(deadline.remainingNanos(), TimeUnit.NANOSECONDS)) {
        throw new IllegalStateException(
            "another task of this executor still initialises cudf's memory after " + deadline);
      }
      try {
        if (!Rmm.isInitialized()) {
          start.start();
        }
      } finally {
        STARTING.unlock();
      }
      if (!Rmm.isInitialized()) {
        throw new IllegalStateException(
            "cudf's memory (RMM) is not initialised in this executor, and Weft does not choose its"
                + " size: pass CudfBatches.function a start that calls Rmm.initialize, or do so in"
                + " an executor plugin");
      }
    }

    /** Both number the GPUs that the process sees in the same way. */
    private static void requireSame(CudaDevice device) {
      int own = device.description().ordinal();
      int cudfs = Cuda.getDevice();
      if (cudfs != own) {
        device.use(); // A query of cudf's device makes that device current.
        throw new IllegalStateException(
            ("cudf's memory in this executor is on GPU %d, and batches are on %d (%s): initialise"
                    + " it where the executor's GPU is the current device, as a CudfStart does")
                .formatted(cudfs, own, device));
      }
    }
  }

  /**
   * Adapts a cudf function to a function on batches. No cudf type occurs in its methods'
   * signatures, so executors without cudf can load it and report what is missing. Immutable; each
   * call is for one thread.
   */
  static final class CudfDeviceFunction implements DeviceFunction {
    private static final long serialVersionUID = 1;

    private final StructType schema;
    private final CudfStart start;
    private final CudfFunction function;

    CudfDeviceFunction(StructType schema, CudfStart start, CudfFunction function) {
      this.schema = schema;
      this.start = start;
      this.function = function;
    }

    @Override
    public DeviceTable apply(DeviceTable batch, DeviceWork work) throws Exception {
      try {
        return new CudfCall(schema, function).of(batch, start, work);
      } catch (NoClassDefFoundError e) {
        throw explained(e);
      }
    }

    /** The program's function has a cudf table in its signature. */
    private void readObject(ObjectInputStream in) throws IOException, ClassNotFoundException {
      try {
        in.defaultReadObject();
      } catch (NoClassDefFoundError e) {
        throw explained(e);
      }
    }

    private static RuntimeException explained(NoClassDefFoundError e) {
      if (e.getMessage() == null || !e.getMessage().contains("ai/rapids/cudf/")) {
        throw e;
      }
      return new IllegalStateException(
          "cudf is not on the class path of this executor, and a function on batches needs it: add"
              + " ai.rapids:cudf with the classifier of this machine's CUDA, such as cuda13",
          e);
    }
  }
}
