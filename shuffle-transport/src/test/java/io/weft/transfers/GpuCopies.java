package io.weft.transfers;

import io.weft.device.Deadline;
import io.weft.device.Lane;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.memory.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.LongConsumer;

/**
 * Rates of plain copies on the first GPU, for comparison with transfers. Prints a table and writes
 * it as JSON. Run by {@code tests/gpu/run}; never a test.
 */
final class GpuCopies {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);
  private static final long[] SIZES = {64L << 10, 1L << 20, 64L << 20};
  private static final long BYTES_OF_A_RUN = 1L << 30;
  private static final int MAX_COPIES = 2000;
  private static final int RUNS = 5;

  private final CudaLane lane;
  private final CudaMemory from;
  private final CudaMemory to;
  private final CudaMemory pinned;
  private final ByteBuffer pageable;
  private final List<Rate> rates = new ArrayList<>();

  /** The median rate of one kind of copies. */
  private record Rate(String copy, long bytes, double gigabytesPerSecond) {
    String json() {
      return String.format(
          Locale.ROOT,
          "{\"copy\": \"%s\", \"bytes\": %d, \"gigabytesPerSecond\": %.3f}",
          copy,
          bytes,
          gigabytesPerSecond);
    }
  }

  private GpuCopies(CudaLane lane, CudaMemoryPool device, CudaMemoryPool host) {
    long largest = SIZES[SIZES.length - 1];
    this.lane = lane;
    this.from = device.take(largest);
    this.to = device.take(largest);
    this.pinned = host.take(largest);
    this.pageable = ByteBuffer.allocateDirect((int) largest);
  }

  /**
   * Runs the measurement.
   *
   * @param args the JSON file to write
   */
  public static void main(String[] args) throws IOException {
    CudaLibrary library;
    try {
      library = TestGpus.cuda();
    } catch (UnavailableLibraryException | CudaException e) {
      System.out.println("No GPU can be used: " + e.getMessage());
      return;
    }
    try (CudaDevice device = library.open(0);
        CudaMemoryPool memory = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1L << 30);
        CudaMemoryPool pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1L << 30);
        CudaLane lane = CudaLane.open(device, "copies", TIMEOUT, Lane.Priority.NORMAL)) {
      GpuCopies copies = new GpuCopies(lane, memory, pinned);
      copies.measureAll();
      copies.write(Path.of(args[0]), library + ", " + device);
      copies.close();
    }
  }

  private void measureAll() {
    CudaStream stream = lane.stream();
    long page = Memory.addressOf(pageable);
    for (long size : SIZES) {
      measure(
          "pinned to device",
          size,
          bytes -> stream.copyToDevice(to.address(), pinned.address(), bytes));
      measure(
          "device to pinned",
          size,
          bytes -> stream.copyToHost(pinned.address(), from.address(), bytes));
      measure("pageable to device", size, bytes -> stream.copyToDevice(to.address(), page, bytes));
      measure("device to pageable", size, bytes -> stream.copyToHost(page, from.address(), bytes));
      measure(
          "within the device",
          size,
          bytes -> stream.copyOnDevice(to.address(), from.address(), bytes));
    }
  }

  private void measure(String copy, long bytes, LongConsumer enqueue) {
    int count = (int) Math.max(1, Math.min(MAX_COPIES, BYTES_OF_A_RUN / bytes));
    double[] runs = new double[RUNS];
    run(bytes, 1, enqueue);
    for (int i = 0; i < RUNS; i++) {
      runs[i] = (double) bytes * count / run(bytes, count, enqueue);
    }
    Arrays.sort(runs);
    Rate rate = new Rate(copy, bytes, runs[RUNS / 2]);
    rates.add(rate);
    System.out.printf(
        Locale.ROOT, "%-20s %,12d bytes  %9.2f GB/s%n", copy, bytes, rate.gigabytesPerSecond());
  }

  /** Nanoseconds from the first copy to the end of the last. */
  private long run(long bytes, int count, LongConsumer enqueue) {
    long start = System.nanoTime();
    lane.submit(
            "copies",
            () -> {
              for (int i = 0; i < count; i++) {
                enqueue.accept(bytes);
              }
            })
        .await(Deadline.after(TIMEOUT));
    return System.nanoTime() - start;
  }

  private void write(Path file, String what) throws IOException {
    StringBuilder json = new StringBuilder();
    json.append("{\"on\": \"").append(what.replace('"', '\'')).append("\", ");
    json.append("\"doubles\": ").append(!TestGpus.haveSpeed()).append(", \"copies\": [\n  ");
    json.append(String.join(",\n  ", rates.stream().map(Rate::json).toList()));
    Files.writeString(file, json.append("\n]}\n"));
  }

  private void close() {
    from.close();
    to.close();
    pinned.close();
  }
}
