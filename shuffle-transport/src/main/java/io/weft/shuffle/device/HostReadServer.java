package io.weft.shuffle.device;

import io.weft.shuffle.device.DeviceBlockMessages.HostReadMessages;
import io.weft.shuffle.store.BlockKey;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers readers that copy device blocks of this executor to host memory. Each request copies one
 * piece; no state is kept between requests. Thread-safe.
 */
public final class HostReadServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(HostReadServer.class);
  private static final int THREADS = 2;

  private final DeviceCatalog catalog;
  private final String executor;
  private final Copies copies;
  private final Duration timeout;
  private final ExecutorService threads;

  /** Copies pieces of blocks to host memory. */
  @FunctionalInterface
  public interface Copies {
    /** The bytes of a table, from an offset. Waits for the device. */
    byte[] copy(DeviceSlice slice, long offset, int length);
  }

  /**
   * Starts to serve.
   *
   * @param executor id of this executor
   * @param timeout how long closing waits for an answer
   */
  public HostReadServer(DeviceCatalog catalog, String executor, Copies copies, Duration timeout) {
    this.catalog = catalog;
    this.executor = executor;
    this.copies = copies;
    this.timeout = timeout;
    AtomicInteger number = new AtomicInteger();
    this.threads =
        Executors.newFixedThreadPool(
            THREADS,
            task -> {
              Thread thread = new Thread(task, "weft-device-reads-" + number.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            });
  }

  /** Whether a request is for this server; others are for {@link DeviceBlockServer}. */
  public static boolean isFor(byte[] request) {
    return request.length > 0 && request[0] >= HostReadMessages.HELD;
  }

  /**
   * The answer of an executor without device blocks.
   *
   * @throws IllegalStateException for a request that needs blocks
   */
  public static byte[] answerWithoutBlocks(byte[] request, String executor) {
    if (!isFor(request) || request[0] != HostReadMessages.HELD) {
      throw new IllegalStateException("executor " + executor + " has no blocks on a GPU");
    }
    try (DataInputStream in = DeviceBlockMessages.read(request)) {
      in.readByte();
      return new byte[HostReadMessages.readKeys(in).size()];
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Answers a request. Does not block. A lookup is answered at once and does not wait behind
   * copies, because a reader treats a late answer as a lost executor.
   */
  public CompletableFuture<byte[]> answer(byte[] request) {
    try {
      return request[0] == HostReadMessages.READ
          ? CompletableFuture.supplyAsync(() -> answerNow(request), threads)
          : CompletableFuture.completedFuture(answerNow(request));
    } catch (RejectedExecutionException | UncheckedIOException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  private byte[] answerNow(byte[] request) {
    try (DataInputStream in = DeviceBlockMessages.read(request)) {
      byte kind = in.readByte();
      return switch (kind) {
        case HostReadMessages.HELD -> held(HostReadMessages.readKeys(in));
        case HostReadMessages.TABLES -> tables(HostReadMessages.readBlock(in));
        case HostReadMessages.READ -> read(HostReadMessages.readPiece(in));
        default -> throw new IOException("unknown request " + kind + " about blocks of a GPU");
      };
    } catch (DeviceFetchException e) {
      return new byte[] {HostReadMessages.MISSING};
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private byte[] held(List<BlockKey> keys) {
    byte[] answer = new byte[keys.size()];
    for (int i = 0; i < answer.length; i++) {
      answer[i] = (byte) (DeviceSlice.isHeld(catalog, keys.get(i)) ? 1 : 0);
    }
    return answer;
  }

  private byte[] tables(DeviceBlock block) throws DeviceFetchException {
    return HostReadMessages.layouts(
        DeviceSlice.of(catalog, block, executor).stream().map(DeviceSlice::layout).toList());
  }

  private byte[] read(HostReadMessages.Piece piece) throws IOException {
    List<DeviceSlice> slices = DeviceSlice.of(catalog, piece.block(), executor);
    boolean known = piece.table() >= 0 && piece.table() < slices.size();
    if (!known || !isWithin(piece, slices.get(piece.table()).layout().bytes())) {
      throw new IOException(piece + " is not within the " + slices.size() + " tables there");
    }
    byte[] bytes = copy(slices.get(piece.table()), piece);
    return DeviceBlockMessages.message(
        out -> {
          out.writeByte(HostReadMessages.THERE);
          out.write(bytes);
        });
  }

  private byte[] copy(DeviceSlice slice, HostReadMessages.Piece piece) throws DeviceFetchException {
    try {
      return copies.copy(slice, piece.offset(), piece.length());
    } catch (RuntimeException e) {
      // If the shuffle was removed meanwhile, this throws the answer.
      List<DeviceSlice> unused = DeviceSlice.of(catalog, piece.block(), executor);
      throw e;
    }
  }

  private static boolean isWithin(HostReadMessages.Piece piece, long bytes) {
    return piece.offset() >= 0 && piece.length() <= bytes - piece.offset();
  }

  /** Ends the threads. */
  @Override
  public void close() {
    threads.shutdownNow();
    try {
      if (!threads.awaitTermination(timeout.toMillis(), TimeUnit.MILLISECONDS)) {
        LOG.warn("A block of executor {} is still being copied to the host", executor);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
