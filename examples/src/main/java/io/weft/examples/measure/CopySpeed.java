package io.weft.examples.measure;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Measures how fast threads copy memory that was touched before. It is an upper bound for a shuffle
 * that copies its bytes once. Each thread copies between two off-heap buffers that are larger than
 * any cache.
 */
public final class CopySpeed {
  private static final int BUFFER_BYTES = 64 << 20;
  private static final int ROUNDS = 8;

  private CopySpeed() {}

  /** Returns the bytes a second that all threads copy together, the best of three measurements. */
  public static double measure(int threads) throws InterruptedException {
    ExecutorService pool =
        Executors.newFixedThreadPool(
            threads,
            work -> {
              Thread thread = new Thread(work, "weft-copy");
              thread.setDaemon(true);
              return thread;
            });
    try {
      List<Callable<Double>> copies = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        Buffers buffers = Buffers.touched();
        copies.add(buffers::bytesPerSecond);
      }
      double best = 0;
      for (int i = 0; i < 3; i++) {
        best = Math.max(best, sum(pool.invokeAll(copies)));
      }
      return best;
    } finally {
      pool.shutdownNow();
    }
  }

  private static double sum(List<Future<Double>> speeds) throws InterruptedException {
    double sum = 0;
    for (Future<Double> speed : speeds) {
      try {
        sum += speed.get();
      } catch (ExecutionException e) {
        throw new IllegalStateException("could not measure the copy speed", e.getCause());
      }
    }
    return sum;
  }

  private record Buffers(ByteBuffer from, ByteBuffer to) {
    static Buffers touched() {
      Buffers buffers =
          new Buffers(
              ByteBuffer.allocateDirect(BUFFER_BYTES), ByteBuffer.allocateDirect(BUFFER_BYTES));
      buffers.copy();
      return buffers;
    }

    void copy() {
      to.put(0, from, 0, BUFFER_BYTES);
    }

    double bytesPerSecond() {
      long start = System.nanoTime();
      for (int i = 0; i < ROUNDS; i++) {
        copy();
      }
      return (double) ROUNDS * BUFFER_BYTES / ((System.nanoTime() - start) / 1e9);
    }
  }
}
