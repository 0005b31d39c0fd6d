package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.RaggedLayout;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;
import io.weft.memory.Memory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Kernels by which ranks write rows into each other's memory. Confined to the thread of its stream,
 * except {@link #stop}. It is unusable after a failure.
 */
final class PeerExchange implements AutoCloseable {
  private static final int RANKS = PeerSignals.MAX_RANKS;
  private static final int BARRIER_BYTES = 8 * RANKS + 8 + 8 + 4 + 4;
  private static final int WRITE_BYTES = 16 * RANKS + 8 * 6 + 4 + 4;
  private static final int BARRIER_THREADS = 32;
  private static final int WRITE_THREADS = 256;

  /** Equals PARTS of peers.cu. */
  private static final int PARTS = 8;

  private static final int MAX_BLOCKS = 512;
  private static final long TABLE_BYTES = 64L << 20;

  private final CudaStream stream;
  private final CudaModule module;
  private final CudaKernel barrier;
  private final CudaKernel write;
  private final CudaMemoryPool tables;
  private final CudaMemoryPool pinned;
  private final PeerReport report;
  private final List<CudaMemory> inUse = new ArrayList<>();

  /** Loads the kernels. */
  public PeerExchange(CudaStream stream) {
    this.stream = stream;
    this.module = CudaModule.load(stream.device(), "peers");
    this.barrier = module.kernel("weft_peer_barrier", BARRIER_BYTES);
    this.write = module.kernel("weft_peer_write", WRITE_BYTES);
    this.tables = CudaMemoryPool.open(stream.device(), CudaMemoryPool.Kind.DEVICE, TABLE_BYTES);
    this.pinned = CudaMemoryPool.open(stream.device(), CudaMemoryPool.Kind.PINNED, TABLE_BYTES);
    this.report = new PeerReport(stream.device());
  }

  /**
   * Enqueues an exchange: a barrier, the rows, a barrier.
   *
   * @param timeout how long the device waits for a rank in each barrier
   */
  public void enqueue(PeerWindow window, PeerRows rows, Duration timeout) {
    long table = upload(rows);
    enqueueBarrier(window, timeout);
    int updates = rows.layout().updates(window.nranks());
    KernelArguments arguments = write.arguments();
    for (int rank = 0; rank < RANKS; rank++) {
      boolean there = rank < window.nranks();
      arguments.putLong(there ? window.peer(rank).address() + rows.offsets()[rank] : 0);
    }
    for (int rank = 0; rank < RANKS; rank++) {
      arguments.putLong(rank < window.nranks() ? rows.receiveRows()[rank] : 0);
    }
    arguments.putLong(rows.send()).putLong(rows.sendRows()).putLong(table);
    arguments.putLong(window.peer(window.rank()).signals()).putLong(report.address());
    arguments.putLong(rows.rowBytes()).putInt(updates).putInt(window.nranks());
    int blocks = Math.min(MAX_BLOCKS, Math.max(1, rows.layout().entries() * PARTS));
    write.launch(stream, blocks, WRITE_THREADS, arguments);
    enqueueBarrier(window, timeout);
  }

  /** Enqueues a barrier of the devices. */
  void enqueueBarrier(PeerWindow window, Duration timeout) {
    KernelArguments arguments = barrier.arguments();
    for (int rank = 0; rank < RANKS; rank++) {
      arguments.putLong(rank < window.nranks() ? window.peer(rank).signals() : 0);
    }
    arguments.putLong(report.address()).putLong(timeout.toNanos());
    arguments.putInt(window.rank()).putInt(window.nranks());
    barrier.launch(stream, 1, BARRIER_THREADS, arguments);
  }

  /** Copies sizes and offsets to the device. */
  private long upload(PeerRows rows) {
    int entries = rows.layout().entries();
    long bytes = 3L * Long.BYTES * entries;
    CudaMemory there = tables.take(Math.max(1, bytes));
    inUse.add(there);
    CudaMemory here = pinned.take(Math.max(1, bytes));
    inUse.add(here);
    for (int entry = 0; entry < entries; entry++) {
      long at = here.address() + 3L * Long.BYTES * entry;
      Memory.putLong(at, rows.layout().sendOffset(entry));
      Memory.putLong(at + Long.BYTES, rows.layout().sendSize(entry));
      Memory.putLong(at + 2 * Long.BYTES, rows.layout().targetOffset(entry));
    }
    stream.copyToDevice(there.address(), here.address(), bytes);
    return there.address();
  }

  /**
   * Checks the exchanges. Call this when the stream has passed all of them.
   *
   * @throws CollectiveException naming the ranks that did not reach a barrier
   */
  public void check(PeerWindow window) {
    List<Integer> silent = report.missingRanks();
    if (!silent.isEmpty()) {
      throw new CollectiveException(
          Kind.TIMEOUT,
          silent,
          "rank %d waited on its device for %s, which did not reach the exchange"
              .formatted(window.rank(), CollectiveException.name(silent)));
    }
    if (report.badEntry() >= 0) {
      throw new CollectiveException(
          Kind.INVALID,
          List.of(window.rank()),
          "update %d of rank %d reads or writes rows that do not exist"
              .formatted(report.badEntry(), window.rank()));
    }
  }

  /** Frees the tables of finished exchanges. */
  public void release() {
    inUse.forEach(CudaMemory::close);
    inUse.clear();
  }

  /** Ends the waits of running and later kernels. Any thread may call it. */
  public void stop() {
    report.stop();
  }

  /** Frees all resources. The stream must be idle. */
  @Override
  public void close() {
    release();
    report.close();
    pinned.close();
    tables.close();
    module.close();
  }

  /**
   * Rows that one rank writes into the memory of all.
   *
   * @param send device address of its rows
   * @param sendRows the number of its rows
   * @param rowBytes of one row, equal on all ranks
   * @param layout which rows go where
   * @param offsets where each rank receives, in bytes from the start of its memory
   * @param receiveRows how many rows fit there
   */
  @SuppressWarnings("ArrayRecordComponent") // Made for one call.
  record PeerRows(
      long send,
      long sendRows,
      long rowBytes,
      RaggedLayout layout,
      long[] offsets,
      long[] receiveRows) {}

  /**
   * Words in pinned memory. The host uses them to end a kernel, and kernels use them to report
   * failures, as struct report of peers.cu. Any thread may call {@link #stop}.
   */
  static final class PeerReport implements AutoCloseable {
    private static final long ENTRY = 8;
    private static final long SILENT = 12;
    private static final long BYTES = SILENT + 4L * PeerSignals.MAX_RANKS;

    private final CudaMemoryPool pool;
    private final CudaMemory words;

    PeerReport(CudaDevice device) {
      this.pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 512);
      this.words = pool.take(BYTES);
      Memory.setMemory(words.address(), BYTES, (byte) 0);
    }

    long address() {
      return words.address();
    }

    /** Makes waiting kernels give up. */
    void stop() {
      Memory.putInt(words.address(), 1);
    }

    /** The ranks that did not reach a barrier in time. */
    List<Integer> missingRanks() {
      return IntStream.range(0, PeerSignals.MAX_RANKS)
          .filter(rank -> Memory.getInt(words.address() + SILENT + 4L * rank) != 0)
          .boxed()
          .toList();
    }

    /** The number of an update that is out of range; -1 if all are valid. */
    int badEntry() {
      return Memory.getInt(words.address() + ENTRY) - 1;
    }

    @Override
    public void close() {
      words.close();
      pool.close();
    }
  }
}
