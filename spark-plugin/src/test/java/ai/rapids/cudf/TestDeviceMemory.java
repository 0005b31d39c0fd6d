package ai.rapids.cudf;

/** Memory of the GPU that cudf did not allocate, sliced and closed as cudf's own. */
public final class TestDeviceMemory extends DeviceMemoryBuffer {
  private static final class Closing extends MemoryBufferCleaner {
    private Runnable free;

    Closing(Runnable free) {
      this.free = free;
    }

    @Override
    protected synchronized boolean cleanImpl(boolean logErrorIfNotClean) {
      if (free == null) {
        return false;
      }
      free.run();
      free = null;
      return true;
    }

    @Override
    public synchronized boolean isClean() {
      return free == null;
    }

    synchronized void forget() {
      free = null;
    }
  }

  private final Closing closing;

  /**
   * Memory that somebody else frees.
   *
   * @param free run when this and all its slices are closed
   */
  public TestDeviceMemory(long address, long bytes, Runnable free) {
    this(address, bytes, new Closing(free));
  }

  private TestDeviceMemory(long address, long bytes, Closing closing) {
    super(address, bytes, closing);
    this.closing = closing;
  }

  /** What a test leaves open on purpose does not keep cudf from being shut down. */
  public void forget() {
    closing.forget();
  }
}
