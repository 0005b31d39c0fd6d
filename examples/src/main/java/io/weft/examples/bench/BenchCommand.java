package io.weft.examples.bench;

import io.weft.examples.bench.collectives.CollectivesBenchCommand;
import picocli.CommandLine.Command;

/** Parses {@code weft bench}. */
@Command(
    name = "bench",
    mixinStandardHelpOptions = true,
    description = "Measures.",
    subcommands = {ShuffleBenchCommand.class, CollectivesBenchCommand.class})
public final class BenchCommand {}
