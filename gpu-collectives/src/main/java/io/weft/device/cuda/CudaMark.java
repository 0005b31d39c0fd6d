package io.weft.device.cuda;

/**
 * A recorded place in a stream. Its owner closes it; the driver keeps it as long as streams wait
 * for it. Used by one thread at a time.
 */
public final class CudaMark implements AutoCloseable {
  private static final int WITHOUT_TIMING = 2;

  private final long handle;
  private final String where;
  private boolean closed;

  private CudaMark(long handle, String where) {
    this.handle = handle;
    this.where = where;
  }

  /** Records a mark; the device of the stream must be the current device. */
  static CudaMark record(long stream, String where) {
    long[] event = new long[1];
    CudaLibrary.check(CudaFunctions.cuEventCreate(event, WITHOUT_TIMING), "cuEventCreate");
    CudaMark mark = new CudaMark(event[0], where);
    int result = CudaFunctions.cuEventRecord(event[0], stream);
    if (result != CudaLibrary.SUCCESS) {
      mark.close();
      CudaLibrary.check(result, "cuEventRecord on " + where);
    }
    return mark;
  }

  long handle() {
    return handle;
  }

  /**
   * Whether the stream has done all work before the mark.
   *
   * @throws CudaException when the device failed
   */
  public boolean isReached() {
    int result = CudaFunctions.cuEventQuery(handle);
    if (result == CudaLibrary.NOT_READY) {
      return false;
    }
    CudaLibrary.check(result, "the work on " + where);
    return true;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      CudaLibrary.check(CudaFunctions.cuEventDestroy_v2(handle), "cuEventDestroy on " + where);
    }
  }
}
