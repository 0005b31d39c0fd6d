package io.weft.examples.bench.transfer;

import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.shuffle.peer.TransportMode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * Measures the rows about blocks between two executors. The constructor starts the processes; the
 * cleanup closes them. For one thread.
 */
final class BlockRows {
  /** Enough for Java to compile the code that is hot in a long-lived executor. */
  private static final int WARM_UPS = 40;

  private static final double PART_OF_PLAIN = 0.6;
  private static final double BATCHING = 10;
  private static final int LATENCY_WARM_UP = 5000;
  private static final int LATENCY_READS = 5000;

  private final TransferBench.Options options;
  private final PeerPair tcp;
  private final PeerPair unchecked;
  private final PeerPair inPlace;

  BlockRows(TransferBench.Options options, Cleanup cleanup, Path work, Path memory)
      throws IOException, InterruptedException {
    this.options = options;
    this.tcp = cleanup.add(PeerPair.start("tcp", work, memory, TransportMode.TCP, true));
    this.unchecked =
        cleanup.add(PeerPair.start("unchecked", work, memory, TransportMode.TCP, false));
    this.inPlace = cleanup.add(PeerPair.start("shm", work, memory, TransportMode.SHM, true));
  }

  /** Measures 256 MiB in blocks of 256 KiB, 32 in a request. */
  TransferReport.RowResult stream() throws IOException, InterruptedException {
    PeerBlocks blocks = new PeerBlocks(1, options.part(64), 16, 256 << 10);
    tcp.write(blocks);
    unchecked.write(blocks);
    List<Rounds.SideFigures> sides =
        new Rounds(WARM_UPS, options.runs())
            .measure(
                List.of(
                    new Rounds.Contestant("Weft/tcp", () -> tcp.readTogether(blocks)),
                    new Rounds.Contestant(
                        "without checksums", () -> unchecked.readTogether(blocks)),
                    new Rounds.Contestant("plain sockets", () -> tcp.readPlain(blocks.allBytes())),
                    new Rounds.Contestant(
                        "memory to memory", () -> tcp.readPlainMemory(blocks.allBytes()))));
    double part = sides.get(2).seconds().median() / sides.get(0).seconds().median();
    return new TransferReport.RowResult(
        Row.STREAM.id(),
        blocks.maps() * blocks.partitions() + " blocks of 256 KiB over loopback, 32 in a request",
        blocks.allBytes(),
        sides,
        TransferReport.Goal.atLeast(
            "at least 60 % of plain sockets' speed", 100 * part, "%", 100 * PART_OF_PLAIN));
  }

  /** Measures 10,000 blocks of 4 KiB. */
  TransferReport.RowResult small() throws IOException, InterruptedException {
    PeerBlocks blocks = new PeerBlocks(2, options.part(100), 100, 4 << 10);
    tcp.write(blocks);
    List<Rounds.SideFigures> sides =
        new Rounds(1, options.runs())
            .measure(
                List.of(
                    new Rounds.Contestant("together", () -> tcp.readTogether(blocks)),
                    new Rounds.Contestant("one by one", () -> tcp.readOneByOne(blocks))));
    double factor = sides.get(1).seconds().median() / sides.get(0).seconds().median();
    return new TransferReport.RowResult(
        Row.SMALL.id(),
        blocks.maps() * blocks.partitions() + " blocks of 4 KiB over loopback",
        blocks.allBytes(),
        sides,
        TransferReport.Goal.atLeast("together at least 10 times faster", factor, "×", BATCHING));
  }

  /** Measures single reads of one warm block of 1 KiB, in every way. */
  List<TransferReport.LatencyFigures> latency() throws IOException, InterruptedException {
    PeerBlocks block = new PeerBlocks(3, 1, 1, 1 << 10);
    tcp.write(block);
    inPlace.write(block);
    List<Way> ways =
        List.of(
            new Way("Weft/shm", times -> inPlace.readAgain(block, times)),
            new Way("Weft/tcp", times -> tcp.readAgain(block, times)),
            new Way("plain sockets", times -> tcp.readPlainAgain(block.bytes(), times)));
    for (Way way : ways) {
      Histogram unused = way.reads().again(LATENCY_WARM_UP);
    }
    for (int run = 0; run < options.runs(); run++) {
      for (Way way : ways) {
        way.all().add(way.reads().again(options.part(LATENCY_READS)));
      }
    }
    return ways.stream()
        .map(way -> TransferReport.LatencyFigures.of(way.name(), way.all()))
        .toList();
  }

  /** A way to read one block, and the latencies of its reads. */
  private record Way(String name, Reads reads, Histogram all) {
    Way(String name, Reads reads) {
      this(name, reads, Histograms.create());
    }
  }

  /** Reads one block several times. */
  private interface Reads {
    Histogram again(int times) throws IOException, InterruptedException;
  }
}
