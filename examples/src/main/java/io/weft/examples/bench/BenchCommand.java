package io.weft.examples.bench;

import io.weft.examples.bench.collectives.CollectivesBenchCommand;
import io.weft.examples.bench.feed.FeedBenchCommand;
import io.weft.examples.bench.transfer.TransferBenchCommand;
import picocli.CommandLine.Command;

/** Parses {@code weft bench}. */
@Command(
    name = "bench",
    mixinStandardHelpOptions = true,
    description = "Measures.",
    subcommands = {
      ShuffleBenchCommand.class,
      CollectivesBenchCommand.class,
      FeedBenchCommand.class,
      TransferBenchCommand.class
    })
public final class BenchCommand {}
