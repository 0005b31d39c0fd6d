package io.weft.examples;

import io.weft.examples.bench.collectives.CollectivesBenchCommand;
import io.weft.examples.bench.driver.DriverBenchCommand;
import io.weft.examples.bench.feed.FeedBenchCommand;
import io.weft.examples.bench.shuffle.ShuffleBenchCommand;
import io.weft.examples.bench.survive.SurviveBenchCommand;
import io.weft.examples.bench.transfer.TransferBenchCommand;
import io.weft.examples.demo.DemoCommand;
import io.weft.examples.doctor.DoctorCommand;
import io.weft.examples.etl.GpuTrainingCommand;
import io.weft.examples.ranks.RanksCommand;
import io.weft.examples.trace.ReplayCommand;
import io.weft.examples.trace.TraceCommand;
import io.weft.examples.train.TrainCommand;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The command line {@code weft}. */
@Command(
    name = "weft",
    mixinStandardHelpOptions = true,
    description =
        "Weft for Apache Spark: the demo, the benchmarks, a training, programs on ranks, traces"
            + " and the doctor.",
    subcommands = {
      DemoCommand.class,
      Weft.BenchCommand.class,
      DoctorCommand.class,
      GpuTrainingCommand.class,
      RanksCommand.class,
      ReplayCommand.class,
      TraceCommand.class,
      TrainCommand.class
    })
public final class Weft {
  private Weft() {}

  /** Ends the process: status 0 is success, 1 a failure, 2 wrong arguments. */
  public static void main(String[] args) {
    // Tables contain non-ASCII characters; without a locale Java writes question marks for them.
    System.setOut(utf8(FileDescriptor.out));
    System.setErr(utf8(FileDescriptor.err));
    System.exit(commandLine().execute(args));
  }

  static CommandLine commandLine() {
    return new CommandLine(new Weft())
        .setExecutionExceptionHandler(
            (failure, command, parsed) -> {
              command.getErr().println();
              command.getErr().println("weft: " + message(failure));
              return CommandLine.ExitCode.SOFTWARE;
            });
  }

  private static PrintStream utf8(FileDescriptor descriptor) {
    return new PrintStream(new FileOutputStream(descriptor), true, StandardCharsets.UTF_8);
  }

  private static String message(Exception failure) {
    return failure.getMessage() == null ? failure.toString() : failure.getMessage();
  }

  /** Groups the benchmarks under {@code weft bench}. */
  @Command(
      name = "bench",
      mixinStandardHelpOptions = true,
      description = "Benchmarks.",
      subcommands = {
        ShuffleBenchCommand.class,
        CollectivesBenchCommand.class,
        DriverBenchCommand.class,
        FeedBenchCommand.class,
        SurviveBenchCommand.class,
        TransferBenchCommand.class
      })
  static final class BenchCommand {}
}
