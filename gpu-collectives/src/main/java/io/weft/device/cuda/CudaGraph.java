package io.weft.device.cuda;

/**
 * Work of a stream that the device runs as often as it is told to, by one call. Addresses are part
 * of it: what it reads and writes has to stay until it is closed and what was launched of it has
 * ended. One thread at a time.
 */
public final class CudaGraph implements AutoCloseable {
  /** Other threads may call the driver as they like meanwhile. */
  private static final int THREAD_LOCAL = 1;

  private final CudaDevice device;
  private final String what;
  private final long handle;
  private boolean closed;

  private CudaGraph(CudaDevice device, String what, long handle) {
    this.device = device;
    this.what = what;
    this.handle = handle;
  }

  /**
   * Captures what the work enqueues on the stream; nothing of it runs. The work may neither
   * allocate nor wait for the stream, nor make marks on it.
   *
   * @param what it is, for messages
   * @throws CudaException when the driver refuses something of it, or it did what it may not
   */
  public static CudaGraph capture(CudaStream stream, String what, Runnable work) {
    stream.device().use();
    CudaLibrary.check(
        CudaGraphFunctions.cuStreamBeginCapture_v2(stream.handle(), THREAD_LOCAL),
        "cuStreamBeginCapture of " + what + " on " + stream);
    boolean done = false;
    long graph = 0;
    try {
      work.run();
      done = true;
    } finally {
      graph = endCapture(stream, what, done);
    }
    try {
      return new CudaGraph(stream.device(), what, instantiate(graph, what));
    } finally {
      discard(graph);
    }
  }

  /** The capture ends in any case, or the stream would be of no use any more. */
  private static long endCapture(CudaStream stream, String what, boolean done) {
    long[] graph = new long[1];
    int result = CudaGraphFunctions.cuStreamEndCapture(stream.handle(), graph);
    if (done) {
      CudaLibrary.check(result, "cuStreamEndCapture of " + what + " on " + stream);
    } else if (result == CudaLibrary.SUCCESS) {
      discard(graph[0]);
    }
    return graph[0];
  }

  private static long instantiate(long graph, String what) {
    long[] exec = new long[1];
    CudaLibrary.check(
        CudaGraphFunctions.cuGraphInstantiateWithFlags(exec, graph, 0),
        "cuGraphInstantiate of " + what);
    return exec[0];
  }

  private static void discard(long graph) {
    int unused = CudaGraphFunctions.cuGraphDestroy(graph);
  }

  /** Enqueues it once more, on any stream of its device. */
  public void launch(CudaStream stream) {
    if (closed) {
      throw new IllegalStateException("the graph of " + what + " was closed");
    }
    device.use();
    CudaLibrary.check(
        CudaGraphFunctions.cuGraphLaunch(handle, stream.handle()),
        "cuGraphLaunch of " + what + " on " + stream);
  }

  /** What was launched goes on to its end. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      device.use();
      CudaLibrary.check(
          CudaGraphFunctions.cuGraphExecDestroy(handle), "cuGraphExecDestroy of " + what);
    }
  }

  @Override
  public String toString() {
    return "the graph of " + what + " of " + device;
  }
}
