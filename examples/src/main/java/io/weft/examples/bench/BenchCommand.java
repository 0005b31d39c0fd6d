package io.weft.examples.bench;

import picocli.CommandLine.Command;

/** Parses {@code weft bench}. */
@Command(
    name = "bench",
    mixinStandardHelpOptions = true,
    description = "Measures.",
    subcommands = {ShuffleBenchCommand.class})
public final class BenchCommand {}
