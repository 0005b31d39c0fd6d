package io.weft.examples.bench.transfer;

import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.shuffle.net.Compression;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Measures a stream of compressible blocks between two hosts whose network has a limited rate, with
 * each compression. The constructor starts the network and the processes; the cleanup closes them.
 * For one thread.
 */
final class NetworkRows {
  /** Enough for the hot code, and for {@code auto} to learn a new rate. */
  private static final int WARM_UPS = 6;

  /** Not all: auto counts processor time like waiting, because tasks need the processors. */
  private static final double PART_OF_BEST = 0.8;

  private final TransferBench.Options options;
  private final LimitedNetwork network;
  private final Map<Compression.Rule, PeerPair> pairs = new EnumMap<>(Compression.Rule.class);

  NetworkRows(TransferBench.Options options, Cleanup cleanup, Path work, Path memory)
      throws IOException, InterruptedException {
    this.options = options;
    this.network = cleanup.add(LimitedNetwork.open());
    for (Compression.Rule rule : Compression.Rule.values()) {
      pairs.put(rule, cleanup.add(PeerPair.start("net-" + rule, work, memory, rule, network)));
    }
  }

  /** Measures 128 MiB in blocks of 256 KiB at a rate. */
  TransferReport.RowResult at(int megabits) throws IOException, InterruptedException {
    network.limit(megabits);
    PeerBlocks blocks = new PeerBlocks(megabits, options.part(32), 16, 256 << 10);
    List<Rounds.Contestant> contestants = new ArrayList<>();
    for (Map.Entry<Compression.Rule, PeerPair> side : pairs.entrySet()) {
      PeerPair pair = side.getValue();
      pair.write(blocks);
      contestants.add(
          new Rounds.Contestant(
              "compression " + side.getKey().name().toLowerCase(Locale.ROOT),
              () -> pair.readTogether(blocks)));
    }
    PeerPair plain = pairs.get(Compression.Rule.NONE);
    contestants.add(
        new Rounds.Contestant("plain sockets", () -> plain.readPlain(blocks.allBytes())));
    List<Rounds.SideFigures> sides = new Rounds(WARM_UPS, options.runs()).measure(contestants);
    double best = sides.stream().mapToDouble(side -> side.seconds().median()).min().orElseThrow();
    return new TransferReport.RowResult(
        Row.NETWORK.id() + " " + megabits,
        blocks.maps() * blocks.partitions()
            + " blocks of 256 KiB of rows between two hosts, at "
            + megabits
            + " Mbit/s",
        blocks.allBytes(),
        sides,
        TransferReport.Goal.atLeast(
            "auto at least 80 % of the fastest's speed",
            100 * best / sides.get(0).seconds().median(), "%", 100 * PART_OF_BEST));
  }
}
