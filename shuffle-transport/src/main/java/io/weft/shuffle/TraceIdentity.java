package io.weft.shuffle;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.ShuffleEvents;
import java.util.concurrent.atomic.AtomicBoolean;
import jdk.jfr.FlightRecorder;
import jdk.jfr.FlightRecorderListener;

/**
 * Writes the name of an executor into recordings of Java Flight Recorder, so that each file names
 * its executor. Does nothing while no recording was started in this process. Thread-safe. Has no
 * lock, because the recorder calls it under its own.
 */
final class TraceIdentity implements FlightRecorderListener, AutoCloseable {
  private final PeerAddress address;
  private final Runnable hook = this::write;
  private final AtomicBoolean added = new AtomicBoolean();
  private volatile boolean closed;

  private TraceIdentity(PeerAddress address) {
    this.address = address;
  }

  /** Starts. The caller closes it. */
  static TraceIdentity start(PeerAddress address) {
    TraceIdentity identity = new TraceIdentity(address);
    // Does not start the recorder, which costs time. It calls back when it starts, or has started.
    FlightRecorder.addListener(identity);
    return identity;
  }

  @Override
  public void recorderInitialized(FlightRecorder recorder) {
    if (!closed && added.compareAndSet(false, true)) {
      FlightRecorder.addPeriodicEvent(ShuffleEvents.Executor.class, hook);
      // A recording may have begun already, and a process may be killed before the chunk's end.
      write();
      if (closed) {
        FlightRecorder.removePeriodicEvent(hook);
      }
    }
  }

  private void write() {
    ShuffleEvents.Executor event = new ShuffleEvents.Executor();
    event.executor = address.executorId();
    event.host = address.host();
    event.server = address.host() + ":" + address.port();
    event.commit();
  }

  @Override
  public void close() {
    closed = true;
    FlightRecorder.removeListener(this);
    if (added.get()) {
      FlightRecorder.removePeriodicEvent(hook);
    }
  }
}
