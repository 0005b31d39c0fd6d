package io.weft.examples;

import io.weft.examples.bench.BenchCommand;
import io.weft.examples.demo.DemoCommand;
import io.weft.examples.doctor.DoctorCommand;
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
    description = "Weft for Apache Spark: the demo, the benchmarks, a training and the doctor.",
    subcommands = {DemoCommand.class, BenchCommand.class, DoctorCommand.class, TrainCommand.class})
public final class Weft {
  private Weft() {}

  /** Ends the process with 0 for success, 1 for a failure, 2 for wrong arguments. */
  public static void main(String[] args) {
    // Tables hold characters beyond ASCII, and Java would write question marks where no locale is
    // set.
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
}
