package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Runs scripts of the tests' resources. */
final class Scripts {
  private static final long LIMIT_SECONDS = 180;

  private Scripts() {}

  static boolean isThere(String program) {
    return Arrays.stream(System.getenv("PATH").split(File.pathSeparator))
        .anyMatch(folder -> Files.isExecutable(Path.of(folder).resolve(program)));
  }

  /** Returns whether a command exits with 0 within the timeout. */
  static boolean succeeds(String... command) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    boolean ended = process.waitFor(60, TimeUnit.SECONDS);
    process.destroyForcibly();
    return ended && process.exitValue() == 0;
  }

  /** Returns the output of a script, as JSON. */
  static JsonNode run(String interpreter, String script, String... arguments) throws Exception {
    Process process = start(interpreter, script, arguments);
    return new ObjectMapper().readTree(output(process));
  }

  /** Returns the output of a process, which has to exit with 0. */
  static String output(Process process) throws Exception {
    byte[] out = within(process, () -> process.getInputStream().readAllBytes());
    String text = new String(out, StandardCharsets.UTF_8);
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as(text).isZero();
    return text;
  }

  /** Reads from a process. Kills it after the timeout, which ends its output. */
  static <T> T within(Process process, Callable<T> read) throws Exception {
    CompletableFuture<Void> kill =
        CompletableFuture.runAsync(
            process::destroyForcibly,
            CompletableFuture.delayedExecutor(LIMIT_SECONDS, TimeUnit.SECONDS));
    try {
      return read.call();
    } finally {
      kill.cancel(false);
    }
  }

  static Process start(String interpreter, String script, String... arguments) throws Exception {
    Path file = Path.of(Scripts.class.getResource(script).toURI());
    List<String> command = new ArrayList<>(List.of(interpreter, file.toString()));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }
}
