package io.weft.deviceblocks;

import io.weft.catalog.BlockKey;
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
 * Answers readers that want blocks of this executor's GPU in memory of their host: piece by piece,
 * nothing is kept for them in between. Thread-safe.
 */
public final class HostReadServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(HostReadServer.class);
  private static final int THREADS = 2;

  private final DeviceCatalog catalog;
  private final String executor;
  private final Copies copies;
  private final Duration patience;
  private final ExecutorService threads;

  /** Copies of blocks in memory of the host. */
  @FunctionalInterface
  public interface Copies {
    /** Bytes of a table, from an offset in its run. Waits for the device. */
    byte[] copy(DeviceSlice slice, long offset, int length);
  }

  /**
   * Starts to serve.
   *
   * @param executor whose blocks these are
   * @param patience the most that closing waits for an answer
   */
  public HostReadServer(DeviceCatalog catalog, String executor, Copies copies, Duration patience) {
    this.catalog = catalog;
    this.executor = executor;
    this.copies = copies;
    this.patience = patience;
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

  /** Whether a question is one for this server; others are for {@link DeviceBlockServer}. */
  public static boolean isFor(byte[] question) {
    return question.length > 0 && question[0] >= HostQuestions.HELD;
  }

  /**
   * The answer of an executor that keeps nothing on a GPU.
   *
   * @throws IllegalStateException for a question that only blocks answer
   */
  public static byte[] answerWithoutBlocks(byte[] question, String executor) {
    if (!isFor(question) || question[0] != HostQuestions.HELD) {
      throw new IllegalStateException("executor " + executor + " has no blocks on a GPU");
    }
    try (DataInputStream in = BlockQuestions.read(question)) {
      in.readByte();
      return new byte[HostQuestions.readKeys(in).size()];
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Takes a question; does not block. What is only looked up is answered at once: it must not wait
   * behind copies, as who asks takes no answer in time for a lost executor.
   */
  public CompletableFuture<byte[]> answer(byte[] question) {
    try {
      return question[0] == HostQuestions.READ
          ? CompletableFuture.supplyAsync(() -> answerNow(question), threads)
          : CompletableFuture.completedFuture(answerNow(question));
    } catch (RejectedExecutionException | UncheckedIOException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  private byte[] answerNow(byte[] question) {
    try (DataInputStream in = BlockQuestions.read(question)) {
      byte kind = in.readByte();
      return switch (kind) {
        case HostQuestions.HELD -> held(HostQuestions.readKeys(in));
        case HostQuestions.TABLES -> tables(HostQuestions.readBlock(in));
        case HostQuestions.READ -> read(HostQuestions.readPiece(in));
        default -> throw new IOException("question " + kind + " about blocks of a GPU");
      };
    } catch (DeviceFetchException e) {
      return new byte[] {HostQuestions.MISSING};
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
    return HostQuestions.layouts(
        DeviceSlice.of(catalog, block, executor).stream().map(DeviceSlice::layout).toList());
  }

  private byte[] read(HostQuestions.Piece piece) throws IOException {
    List<DeviceSlice> slices = DeviceSlice.of(catalog, piece.block(), executor);
    boolean known = piece.table() >= 0 && piece.table() < slices.size();
    if (!known || !isWithin(piece, slices.get(piece.table()).layout().bytes())) {
      throw new IOException(piece + " is not within the " + slices.size() + " tables there");
    }
    byte[] bytes = copy(slices.get(piece.table()), piece);
    return BlockQuestions.message(
        out -> {
          out.writeByte(HostQuestions.THERE);
          out.write(bytes);
        });
  }

  private byte[] copy(DeviceSlice slice, HostQuestions.Piece piece) throws DeviceFetchException {
    try {
      return copies.copy(slice, piece.offset(), piece.length());
    } catch (RuntimeException e) {
      // Where its shuffle was removed meanwhile, that is the answer.
      List<DeviceSlice> unused = DeviceSlice.of(catalog, piece.block(), executor);
      throw e;
    }
  }

  private static boolean isWithin(HostQuestions.Piece piece, long bytes) {
    return piece.offset() >= 0 && piece.length() <= bytes - piece.offset();
  }

  /** Ends the threads. */
  @Override
  public void close() {
    threads.shutdownNow();
    try {
      if (!threads.awaitTermination(patience.toMillis(), TimeUnit.MILLISECONDS)) {
        LOG.warn("A block of executor {} is still being copied to the host", executor);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
