package io.weft.device.cuda;

/**
 * A place in a stream, recorded when it was made. Whoever has it closes it; the driver keeps what
 * streams still wait for. One thread at a time.
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

  /** The device of the stream has to be the current one. */
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
   * Whether all before it has been done.
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
