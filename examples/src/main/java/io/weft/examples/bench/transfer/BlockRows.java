package io.weft.examples.bench.transfer;

import io.weft.examples.side.Cleanup;
import io.weft.peer.TransportMode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * The rows about blocks between two executors. Starts its processes when it is made, for the
 * cleanup to close. One thread.
 */
final class BlockRows {
  /** Until Java has compiled what a long-lived executor has compiled. */
  private static final int WARM_UPS = 40;

  private static final double PART_OF_PLAIN = 0.6;
  private static final double BATCHING = 10;
  private static final int LATENCY_WARM_UP = 5000;
  private static final int LATENCY_READS = 5000;

  private final TransferBenchOptions options;
  private final PeerPair tcp;
  private final PeerPair unchecked;
  private final PeerPair inPlace;

  BlockRows(TransferBenchOptions options, Cleanup cleanup, Path work, Path memory)
      throws IOException, InterruptedException {
    this.options = options;
    this.tcp = cleanup.add(PeerPair.start("tcp", work, memory, TransportMode.TCP, true));
    this.unchecked =
        cleanup.add(PeerPair.start("unchecked", work, memory, TransportMode.TCP, false));
    this.inPlace = cleanup.add(PeerPair.start("shm", work, memory, TransportMode.SHM, true));
  }

  /** 256 MiB in blocks of 256 KiB: 32 in a request. */
  RowResult stream() throws IOException, InterruptedException {
    PeerBlocks blocks = new PeerBlocks(1, options.part(64), 16, 256 << 10);
    tcp.write(blocks);
    unchecked.write(blocks);
    List<SideFigures> sides =
        new InTurn(WARM_UPS, options.runs())
            .measure(
                List.of(
                    new Contestant("Weft/tcp", () -> tcp.readTogether(blocks)),
                    new Contestant("without checksums", () -> unchecked.readTogether(blocks)),
                    new Contestant("plain sockets", () -> tcp.readPlain(blocks.allBytes())),
                    new Contestant(
                        "memory to memory", () -> tcp.readPlainMemory(blocks.allBytes()))));
    double part = sides.get(2).seconds().median() / sides.get(0).seconds().median();
    return new RowResult(
        Row.STREAM.id(),
        blocks.maps() * blocks.partitions() + " blocks of 256 KiB over loopback, 32 in a request",
        blocks.allBytes(),
        sides,
        Goal.atLeast(
            "at least 60 % of plain sockets' speed", 100 * part, "%", 100 * PART_OF_PLAIN));
  }

  /** 10,000 blocks of 4 KiB. */
  RowResult small() throws IOException, InterruptedException {
    PeerBlocks blocks = new PeerBlocks(2, options.part(100), 100, 4 << 10);
    tcp.write(blocks);
    List<SideFigures> sides =
        new InTurn(1, options.runs())
            .measure(
                List.of(
                    new Contestant("together", () -> tcp.readTogether(blocks)),
                    new Contestant("one by one", () -> tcp.readOneByOne(blocks))));
    double factor = sides.get(1).seconds().median() / sides.get(0).seconds().median();
    return new RowResult(
        Row.SMALL.id(),
        blocks.maps() * blocks.partitions() + " blocks of 4 KiB over loopback",
        blocks.allBytes(),
        sides,
        Goal.atLeast("together at least 10 times faster", factor, "×", BATCHING));
  }

  /** One block of 1 KiB, warm, by every way. */
  List<LatencyFigures> latency() throws IOException, InterruptedException {
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
    return ways.stream().map(way -> LatencyFigures.of(way.name(), way.all())).toList();
  }

  /** A way to read one block, and how long that took each time. */
  private record Way(String name, Reads reads, Histogram all) {
    Way(String name, Reads reads) {
      this(name, reads, Histograms.create());
    }
  }

  /** Reads so many times. */
  private interface Reads {
    Histogram again(int times) throws IOException, InterruptedException;
  }
}
