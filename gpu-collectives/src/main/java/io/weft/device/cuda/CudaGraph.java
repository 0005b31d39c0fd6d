package io.weft.device.cuda;

/**
 * Captured work of a stream that one call launches again. The graph contains addresses, so the
 * memory must stay until the graph is closed and its launches have ended. Used by one thread at a
 * time.
 */
public final class CudaGraph implements AutoCloseable {
  /** Other threads may call the driver during the capture. */
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
   * Captures the work that a function enqueues on the stream, without running it. The function must
   * not allocate, wait for the stream or create marks on it.
   *
   * @param what a name for messages
   * @throws CudaException when the driver refuses a part of the work
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

  /** Ends the capture in any case, because the stream would be unusable otherwise. */
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

  /** Enqueues the graph once, on any stream of its device. */
  public void launch(CudaStream stream) {
    if (closed) {
      throw new IllegalStateException("the graph of " + what + " was closed");
    }
    device.use();
    CudaLibrary.check(
        CudaGraphFunctions.cuGraphLaunch(handle, stream.handle()),
        "cuGraphLaunch of " + what + " on " + stream);
  }

  /** Destroys the graph; launches that are under way run to their end. */
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
