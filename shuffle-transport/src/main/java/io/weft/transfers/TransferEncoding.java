package io.weft.transfers;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;
import io.weft.tensor.TensorType;
import io.weft.tensor.codec.CodecKind;
import io.weft.tensor.codec.TensorEncoder;
import io.weft.tensor.codec.TensorHeader;
import io.weft.transfers.TransferCounter.TransferCounters;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The form in which the elements of a transfer travel: plain, or encoded in chunks through staging
 * memory. The first chunk has the header of the encoded tensor and its first piece; each other
 * chunk is one piece. The staging memory has two slots, so that one chunk moves while another is
 * encoded or decoded. Each slot starts with an int64, the length of its chunk.
 *
 * <p>Immutable. The staging memory is freed with the end of the transfer.
 *
 * @param staging the slots; null for plain elements
 * @param coders encode and decode; null for plain elements
 */
record TransferEncoding(CodecKind kind, TransferBuffer staging, CodecThreads coders) {
  /** Elements travel without encoding. */
  static final TransferEncoding PLAIN = new TransferEncoding(CodecKind.NONE, null, null);

  private static final int SLOTS = 2;
  private static final int LENGTH_BYTES = Long.BYTES;
  private static final int ALIGNMENT = 64;

  boolean isPlain() {
    return staging == null;
  }

  /** The number of chunks of an array. */
  static int chunks(long elements) {
    return Math.toIntExact(
        (elements + TensorEncoder.PIECE_ELEMENTS - 1) / TensorEncoder.PIECE_ELEMENTS);
  }

  /** The bytes of both slots of an array. */
  static long stagingBytes(CodecKind kind, DataType type, long elements) {
    return SLOTS * slotBytes(kind, type, elements);
  }

  private static long slotBytes(CodecKind kind, DataType type, long elements) {
    int piece = (int) Math.min(TensorEncoder.PIECE_ELEMENTS, elements);
    long bytes =
        (long) LENGTH_BYTES
            + new TensorHeader(kind, TensorType.of(type, elements), 0).bytes()
            + kind.codec().pieceBound(type, piece);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }

  private long slot(int chunk) {
    return staging.bytes() / SLOTS * (chunk % SLOTS);
  }

  /** The length field of a chunk's slot. */
  TypedBuffer length(int chunk) {
    return TypedBuffer.of(staging, slot(chunk), DataType.INT64, 1);
  }

  /** The memory of a chunk in its slot. */
  TypedBuffer memory(int chunk) {
    long most = staging.bytes() / SLOTS - LENGTH_BYTES;
    return TypedBuffer.of(staging, slot(chunk) + LENGTH_BYTES, DataType.INT8, most);
  }

  /** Frees the staging memory at the end of the event. */
  void usedUntil(Event end) {
    if (staging != null) {
      staging.usedUntil(end);
      staging.close();
    }
  }

  /**
   * A pool of threads "weft-transfer-code-…" that encode and decode chunks while lanes move other
   * chunks. It has at most one thread for each processor, and none while it is idle. One task is
   * one chunk and never blocks, so no clique waits long for another.
   *
   * <p>Thread-safe.
   */
  static final class CodecThreads implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(CodecThreads.class);
    private static final long IDLE_SECONDS = 10;
    private static final long CLOSE_TIMEOUT_SECONDS = 5;

    /** A chunk takes milliseconds; finding the largest element of 2 GiB takes a second. */
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private final TransferCounters counters;
    private final Duration timeout;
    private final ThreadPoolExecutor threads;

    CodecThreads(String executor, TransferCounters counters) {
      this(executor, counters, TIMEOUT);
    }

    /**
     * Creates coders without threads.
     *
     * @param timeout how long a lane waits for one chunk before its transfer fails
     */
    CodecThreads(String executor, TransferCounters counters, Duration timeout) {
      this.counters = counters;
      this.timeout = timeout;
      AtomicInteger number = new AtomicInteger();
      int most = Runtime.getRuntime().availableProcessors();
      this.threads =
          new ThreadPoolExecutor(
              most,
              most,
              IDLE_SECONDS,
              TimeUnit.SECONDS,
              new LinkedBlockingQueue<>(),
              work -> {
                String name = "weft-transfer-code-" + executor + "-" + number.getAndIncrement();
                Thread made = new Thread(work, name);
                made.setDaemon(true);
                return made;
              });
      threads.allowCoreThreadTimeOut(true);
    }

    /** How long a lane waits for one chunk. */
    Duration timeout() {
      return timeout;
    }

    /** Starts the work on one chunk, and counts it when it is done. */
    <T> CompletableFuture<T> submit(TransferCounter done, Callable<T> chunk) {
      CompletableFuture<T> end = new CompletableFuture<>();
      threads.execute(
          () -> {
            try {
              T result = chunk.call();
              counters.increment(done);
              end.complete(result);
            } catch (Throwable e) {
              // Every failure goes to the thread that waits for the chunk.
              end.completeExceptionally(e);
            }
          });
      return end;
    }

    /** Waits up to 5 s for chunks under way. The lanes have ended before. */
    @Override
    public void close() {
      threads.shutdown();
      try {
        if (!threads.awaitTermination(CLOSE_TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
          LOG.warn("A chunk of a transfer is still being encoded or decoded");
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
