package io.weft.spark.feed;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The exchanged rows of one rank on its device, and the batches made of them. A batch of adjacent
 * rows is a view; any other batch is copied together on the device once. For its task's thread,
 * which closes it at the end of the task.
 */
final class DeviceShard implements AutoCloseable {
  private final DeviceExchange device;
  private final GpuBatchLayout layout;
  private final DeviceUploads lane;
  private final Runnable cancelCheck;
  private final Map<Part, List<DeviceRows>> parts = new HashMap<>();
  private final List<CudaMemory> gathered = new ArrayList<>();
  private final List<ExchangedBatch> batches = new ArrayList<>();
  private boolean closed;

  /** Identifies the rows that a map task wrote for a partition. */
  private record Part(int map, int partition) {}

  /** Adjacent rows of a table. */
  private record Run(DeviceRows table, int start, int rows) {}

  /** Creates an empty shard with a lane of this name. */
  DeviceShard(DeviceExchange device, GpuBatchLayout layout, String name, Runnable cancelCheck) {
    this.device = device;
    this.layout = layout;
    this.cancelCheck = cancelCheck;
    this.lane = device.gpu().uploads(name);
  }

  DeviceExchange device() {
    return device;
  }

  GpuBatchLayout layout() {
    return layout;
  }

  /** Returns the lane that streams of the rank are ordered behind. */
  DeviceUploads lane() {
    return lane;
  }

  /**
   * Adds the rows that a map task wrote for a partition and takes ownership of their tables;
   * returns the number of rows.
   */
  int add(int map, int partition, List<DeviceRows> tables) {
    parts.computeIfAbsent(new Part(map, partition), part -> new ArrayList<>()).addAll(tables);
    return tables.stream().mapToInt(table -> table.layout().rows()).sum();
  }

  /** Returns the rank's batches, in the order of the plan. Makes them on the first call. */
  List<ExchangedBatch> batches(FeedPlan plan, int rank) {
    if (batches.isEmpty()) {
      List<ExchangedBatch> made = new ArrayList<>();
      List<Event> copies = new ArrayList<>();
      for (FeedPlan.Batch batch : plan.rank(rank)) {
        List<Run> runs = runs(batch);
        made.add(runs.size() == 1 ? view(runs.get(0)) : gather(batch.rows(), runs, copies));
      }
      copies.forEach(copy -> copy.await(device.deadline()));
      batches.addAll(made);
    }
    return batches;
  }

  /** Starts to copy batches, one after the other, to memory that has room for them. */
  Event copy(List<FeedPlan.Batch> copied, CudaMemory memory) {
    List<List<Run>> runs = copied.stream().map(this::runs).toList();
    long start = memory.address();
    Event done =
        lane.lane()
            .submit(
                "the copy of " + copied.size() + " batches",
                () -> {
                  for (int i = 0; i < runs.size(); i++) {
                    copy(runs.get(i), start + i * layout.bytes());
                  }
                });
    memory.usedUntil(done);
    runs.forEach(all -> all.forEach(run -> run.table().usedUntil(done)));
    return done;
  }

  private List<Run> runs(FeedPlan.Batch batch) {
    return batch.pieces().stream().flatMap(piece -> runs(piece).stream()).toList();
  }

  /** Finds the rows of a piece, which may span several tables. */
  private List<Run> runs(FeedPlan.Piece piece) {
    List<Run> runs = new ArrayList<>();
    int skip = Math.addExact(Math.multiplyExact(piece.chunk(), layout.batchRows()), piece.start());
    int left = piece.rows();
    for (DeviceRows table : parts.get(new Part(piece.map(), piece.partition()))) {
      int here = table.layout().rows();
      int taken = Math.min(left, Math.max(0, here - skip));
      if (taken > 0) {
        runs.add(new Run(table, skip, taken));
      }
      skip = Math.max(0, skip - here);
      left -= taken;
    }
    if (left > 0) {
      throw new IllegalStateException(piece + " has " + left + " rows that are missing");
    }
    return runs;
  }

  private ExchangedBatch view(Run run) {
    TableLayout table = run.table().layout();
    List<Long> addresses = new ArrayList<>();
    for (int c = 0; c < layout.columns().size(); c++) {
      long width = table.columns().get(c).width();
      addresses.add(run.table().address() + table.data(c) + run.start() * width);
    }
    FeedCounters.add(FeedCounter.BATCHES_IN_PLACE, 1);
    return new ExchangedBatch(run.rows(), addresses, List.of(run.table()::usedUntil));
  }

  private ExchangedBatch gather(int rows, List<Run> runs, List<Event> copies) {
    CudaMemory memory = device.gpu().take(Math.max(1, layout.bytes()), cancelCheck);
    gathered.add(memory);
    long start = memory.address();
    copies.add(
        lane.lane()
            .submit("putting a batch of " + rows + " rows together", () -> copy(runs, start)));
    FeedCounters.add(FeedCounter.BATCHES_GATHERED, 1);
    FeedCounters.add(FeedCounter.ROWS_GATHERED, rows);
    FeedCounters.add(FeedCounter.BYTES_GATHERED, rows == 0 ? 0 : layout.bytes());
    List<Long> addresses = layout.columns().stream().map(place -> start + place.offset()).toList();
    Consumer<Event> keeper = memory::usedUntil;
    return new ExchangedBatch(rows, addresses, List.of(keeper));
  }

  private void copy(List<Run> runs, long to) {
    int done = 0;
    for (Run run : runs) {
      copy(run, to, done);
      done += run.rows();
    }
  }

  private void copy(Run run, long to, int rowsBefore) {
    TableLayout table = run.table().layout();
    for (int c = 0; c < layout.columns().size(); c++) {
      long width = table.columns().get(c).width();
      if (width > 0) {
        lane.lane().stream()
            .copyOnDevice(
                to + layout.columns().get(c).offset() + rowsBefore * width,
                run.table().address() + table.data(c) + run.start() * width,
                run.rows() * width);
      }
    }
  }

  /** Waits for the lane, then frees all memory that is not in use. Idempotent. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      lane.close();
      gathered.forEach(CudaMemory::close);
      parts.values().forEach(tables -> tables.forEach(DeviceRows::close));
    }
  }

  /**
   * A batch that stays on the device until its shard is closed.
   *
   * @param rows number of rows
   * @param addresses of its columns, by column number in the layout
   * @param keepers one per part of the memory: each keeps its part until an event has completed
   */
  record ExchangedBatch(int rows, List<Long> addresses, List<Consumer<Event>> keepers) {
    /** Keeps the memory until the event has completed, even after the shard is closed. */
    void usedUntil(Event event) {
      keepers.forEach(keeper -> keeper.accept(event));
    }
  }
}
