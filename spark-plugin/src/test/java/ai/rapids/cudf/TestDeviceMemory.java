package ai.rapids.cudf;

/** GPU memory that cudf did not allocate, sliced and closed like cudf's own. */
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
   * Memory that its owner frees.
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

  /** Lets cudf shut down although a test leaves this memory open on purpose. */
  public void forget() {
    closing.forget();
  }
}
