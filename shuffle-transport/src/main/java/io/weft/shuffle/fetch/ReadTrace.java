package io.weft.shuffle.fetch;

import io.weft.device.probe.JfrModule;
import io.weft.shuffle.fetch.ChunkReader.CurrentChunk;
import io.weft.shuffle.fetch.PeerQueue.DeliveryState;
import io.weft.shuffle.fetch.PeerQueue.FetchPlan;
import io.weft.shuffle.peer.ShuffleEvents.Fetch;
import io.weft.shuffle.peer.ShuffleEvents.Read;
import io.weft.shuffle.peer.ShuffleEvents.Wait;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Writes the JFR events of one reader. Whether a reader is traced is decided when it is opened. For
 * the reader's thread.
 */
final class ReadTrace {
  /** Read through a mapping: of this executor ("own"), or of another one of its host ("shm"). */
  static final String IN_PLACE = "in place";

  static final String COPY = "copy";
  static final String NETWORK = "tcp";

  private static final AtomicLong READERS = new AtomicLong();
  private static final ReadTrace OFF = new ReadTrace(0);

  private final long reader;
  private Read starting;
  private Read reading;
  private BlockRequest request;

  private ReadTrace(long reader) {
    this.reader = reader;
  }

  /** The trace of a new reader. It does nothing unless a recording wants the events. */
  static ReadTrace open() {
    return JfrModule.PRESENT && Read.isReaderTraced()
        ? new ReadTrace(READERS.incrementAndGet())
        : OFF;
  }

  /** Called before the reader looks for its next chunk. */
  void seek() {
    if (this != OFF) {
      starting = Read.start();
    }
  }

  /**
   * Called with the chunk that was found. One event covers consecutive chunks of a request.
   *
   * @param path how it is read: {@link #IN_PLACE}, {@link #COPY} or {@link #NETWORK}
   * @param self id of this executor
   */
  void found(CurrentChunk chunk, String path, String self) {
    if (this == OFF) {
      return;
    }
    if (!chunk.request.equals(request)) {
      commit();
      starting.end();
      reading = starting;
      request = chunk.request;
      reading.shuffleId = request.key().shuffleId();
      reading.reader = reader;
      reading.mapId = request.key().mapId();
      reading.firstPartition = chunk.partition;
      reading.peer = request.executorId();
      String inPlace = self.equals(reading.peer) ? "own" : "shm";
      reading.path = path.equals(IN_PLACE) ? inPlace : path;
    }
    reading.lastPartition = chunk.partition;
    reading.chunks++;
    reading.rows += chunk.rows;
    reading.bytes += chunk.length;
  }

  /** Writes the event of the last chunks. Can be repeated. */
  void commit() {
    if (reading != null) {
      reading.commit();
      reading = null;
      request = null;
    }
  }

  /** Begins the event of a request to a peer; null if the reader is not traced. */
  Fetch fetch(FetchPlan plan) {
    if (this == OFF) {
      return null;
    }
    Fetch event = Fetch.start();
    event.reader = reader;
    event.shuffleId = plan.requests().get(0).key().shuffleId();
    event.peer = plan.queue().peer().executorId();
    event.host = plan.queue().peer().host();
    return event;
  }

  /** Begins the event of a wait; null if the reader is not traced. */
  Wait waits(int shuffleId, Optional<DeliveryState> slowest) {
    if (this == OFF) {
      return null;
    }
    Wait event = Wait.start();
    event.reader = reader;
    event.shuffleId = shuffleId;
    event.peer = slowest.map(ReadTrace::peer).orElse("");
    return event;
  }

  private static String peer(DeliveryState state) {
    return state.request().plan().queue().peer().executorId();
  }
}
