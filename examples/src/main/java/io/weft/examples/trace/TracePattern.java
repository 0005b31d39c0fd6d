package io.weft.examples.trace;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * The pattern of a trace: who wrote which map outputs, and who read which of their blocks, in which
 * order; and the transfers of arrays.
 *
 * @param hosts by executor id; names of their own if they are unknown
 * @param shuffles in the order in which their reads began
 * @param totals of the trace, by shuffle
 * @param transfers between the executors of the trace
 */
record TracePattern(
    Map<String, String> hosts,
    List<ShufflePattern> shuffles,
    Map<Integer, ShuffleTotals> totals,
    TransferPattern transfers) {

  /**
   * A shuffle.
   *
   * @param outputs of map tasks
   * @param readers in the order in which they began
   */
  record ShufflePattern(int shuffle, Collection<Output> outputs, List<Reader> readers) {}

  /** A map output: the blocks that were read, and the rest that was not. */
  static final class Output {
    private final String executor;
    private final int shuffle;
    private final long mapId;
    private final Map<Long, Block> blocks = new LinkedHashMap<>();
    private long thread;
    private long written;
    private int writtenChunks;

    private Output(String executor, int shuffle, long mapId) {
      this.executor = executor;
      this.shuffle = shuffle;
      this.mapId = mapId;
    }

    String executor() {
      return executor;
    }

    int shuffle() {
      return shuffle;
    }

    long mapId() {
      return mapId;
    }

    /** The thread that wrote it; 0 if that was not recorded. */
    long thread() {
      return thread;
    }

    Collection<Block> blocks() {
      return blocks.values();
    }

    /** Bytes that no reader of the trace has read. */
    long unread() {
      return Math.max(0, written - blocks.values().stream().mapToLong(Block::bytes).sum());
    }

    /** Chunks of these bytes; at least 1. */
    int unreadChunks() {
      return Math.max(1, writtenChunks - blocks.values().stream().mapToInt(Block::chunks).sum());
    }
  }

  /** Partitions of a map output that were read together. */
  static final class Block {
    private final int number;
    private long bytes;
    private int chunks;

    private Block(int number) {
      this.number = number;
    }

    /** Its partition in the replay, from 0. */
    int number() {
      return number;
    }

    long bytes() {
      return bytes;
    }

    /** At least 1. */
    int chunks() {
      return chunks;
    }
  }

  /**
   * A reader of one shuffle.
   *
   * @param executor that reads
   * @param thread that reads
   * @param reads in order
   */
  record Reader(String executor, long thread, List<BlockRead> reads) {}

  /** A block that a reader gets. */
  record BlockRead(Output output, Block block) {}

  /**
   * Reads a trace file, event by event. Keeps about 100 bytes for each event of a read.
   *
   * @throws IOException if it is no trace, is cut off or damaged, or has neither reads nor
   *     transfers
   */
  static TracePattern read(Path file) throws IOException {
    Builder builder = new Builder();
    TraceEvent.forEach(file, builder::add);
    TracePattern pattern = builder.build();
    if (builder.problem != null) {
      throw new IOException(file + " " + builder.problem);
    }
    if (pattern.shuffles().isEmpty() && pattern.transfers().moves().isEmpty()) {
      throw new IOException(
          file + " has no reads of shuffles and no transfers, so there is nothing to replay");
    }
    return pattern;
  }

  /** Collects events. */
  private static final class Builder {
    private final Map<Integer, String> executors = new HashMap<>();
    private final Map<String, String> hosts = new LinkedHashMap<>();
    private final ShuffleTotals.Sums sums = new ShuffleTotals.Sums();
    private final TransferPattern.Builder transfers = new TransferPattern.Builder();
    private final List<TraceEvent> writes = new ArrayList<>();
    private final Map<ReaderKey, List<Run>> runs = new HashMap<>();
    private String problem;

    /** Names a reader of a trace. */
    private record ReaderKey(int process, long reader, int shuffle) {}

    /** Consecutive chunks of one map output. */
    private record Run(
        long start,
        long thread,
        String peer,
        boolean sharesMemory,
        long mapId,
        int first,
        int last,
        long bytes,
        int chunks) {}

    void add(TraceEvent event) {
      sums.add(event);
      switch (event.name()) {
        case "process_name" -> {
          String id = event.text("executor");
          executors.put(event.process(), id);
          if (hosts.put(id, event.text("host")) != null) {
            problem = "has two executors " + id + ": merge recordings of one application only";
          }
        }
        case "Write" -> {
          check(event.number("bytes") >= 0 && event.number("chunks") >= 0, event);
          writes.add(event);
        }
        case "Read" -> {
          checkRead(event);
          int shuffle = (int) event.number("shuffleId");
          ReaderKey key = new ReaderKey(event.process(), event.number("reader"), shuffle);
          runs.computeIfAbsent(key, unused -> new ArrayList<>()).add(run(event));
        }
        default -> check(transfers.add(event), event);
      }
    }

    private void checkRead(TraceEvent event) {
      long chunks = event.number("chunks");
      long first = event.number("firstPartition");
      check(chunks >= 1 && chunks <= event.number("bytes"), event);
      check(first >= 0 && first <= event.number("lastPartition"), event);
      check(event.number("shuffleId") >= 0, event);
    }

    private void check(boolean valid, TraceEvent event) {
      if (!valid) {
        problem = "has an event with impossible figures: " + event.json();
      }
    }

    private static Run run(TraceEvent event) {
      return new Run(
          event.start(),
          event.thread(),
          event.text("peer").intern(),
          event.text("path").equals("shm"),
          event.number("mapId"),
          (int) event.number("firstPartition"),
          (int) event.number("lastPartition"),
          event.number("bytes"),
          (int) event.number("chunks"));
    }

    TracePattern build() {
      Map<Integer, Map<Long, Output>> outputs = new LinkedHashMap<>();
      Map<Integer, List<Reader>> readers = new LinkedHashMap<>();
      runs.values().forEach(list -> list.sort(Comparator.comparingLong(Run::start)));
      runs.keySet().stream()
          .filter(key -> !executors.containsKey(key.process()))
          .findAny()
          .ifPresent(key -> problem = "does not name the executor of process " + key.process());
      if (problem == null) {
        findHosts();
      }
      runs.entrySet().stream()
          .sorted(Comparator.comparingLong(entry -> entry.getValue().get(0).start()))
          .forEach(entry -> addReader(entry.getKey(), entry.getValue(), outputs, readers));
      for (TraceEvent write : writes) {
        addWrite(write, outputs);
      }
      List<ShufflePattern> shuffles = new ArrayList<>();
      readers.forEach(
          (id, list) -> shuffles.add(new ShufflePattern(id, outputs.get(id).values(), list)));
      return new TracePattern(hosts, shuffles, sums.totals(), transfers());
    }

    /** Both ends of a transfer are recorded by an executor that the trace names. */
    private TransferPattern transfers() {
      TransferPattern pattern = transfers.build();
      pattern.moves().stream()
          .flatMap(move -> Stream.of(move.source(), move.destination()))
          .filter(device -> !executors.containsValue(device.executor()))
          .findAny()
          .filter(device -> problem == null)
          .ifPresent(device -> problem = "does not name the executor of " + device);
      return pattern;
    }

    /** Executors without a recording are on the host of a reader that shares their memory. */
    private void findHosts() {
      hosts.replaceAll((id, host) -> host.isEmpty() ? "host of " + id : host);
      runs.forEach(
          (key, list) -> {
            String host = hosts.get(executors.get(key.process()));
            list.stream()
                .filter(Run::sharesMemory)
                .forEach(run -> hosts.putIfAbsent(run.peer(), host));
          });
      runs.values().stream()
          .flatMap(List::stream)
          .forEach(run -> hosts.putIfAbsent(run.peer(), "host of " + run.peer()));
    }

    /** Joins the runs of a map output, which come apart if blocks of other peers come between. */
    private void addReader(
        ReaderKey key,
        List<Run> list,
        Map<Integer, Map<Long, Output>> outputs,
        Map<Integer, List<Reader>> readers) {
      Map<Long, List<Run>> byMap = new LinkedHashMap<>();
      list.forEach(run -> byMap.computeIfAbsent(run.mapId(), id -> new ArrayList<>()).add(run));
      List<BlockRead> reads = new ArrayList<>();
      byMap.forEach(
          (mapId, parts) -> {
            Output output =
                outputs
                    .computeIfAbsent(key.shuffle(), id -> new LinkedHashMap<>())
                    .computeIfAbsent(
                        mapId, id -> new Output(parts.get(0).peer(), key.shuffle(), mapId));
            reads.add(new BlockRead(output, block(output, parts)));
          });
      String executor = executors.get(key.process());
      readers
          .computeIfAbsent(key.shuffle(), id -> new ArrayList<>())
          .add(new Reader(executor, list.get(0).thread(), reads));
    }

    private static Block block(Output output, List<Run> parts) {
      long first = parts.stream().mapToInt(Run::first).min().orElseThrow();
      long last = parts.stream().mapToInt(Run::last).max().orElseThrow();
      Block block =
          output.blocks.computeIfAbsent(
              first << 32 | last, range -> new Block(output.blocks.size()));
      block.bytes = Math.max(block.bytes, parts.stream().mapToLong(Run::bytes).sum());
      block.chunks = Math.max(block.chunks, parts.stream().mapToInt(Run::chunks).sum());
      return block;
    }

    private static void addWrite(TraceEvent write, Map<Integer, Map<Long, Output>> outputs) {
      Map<Long, Output> known = outputs.get((int) write.number("shuffleId"));
      Output output = known == null ? null : known.get(write.number("mapId"));
      // An output that no reader of the trace has read is not written in the replay.
      if (output != null) {
        output.written = write.number("bytes");
        output.writtenChunks = (int) write.number("chunks");
        output.thread = write.thread();
      }
    }
  }
}
