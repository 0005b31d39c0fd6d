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
import java.util.concurrent.TimeUnit;

/** Runs scripts of the tests' resources. */
final class Scripts {
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
    String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as(out).isZero();
    return new ObjectMapper().readTree(out);
  }

  static Process start(String interpreter, String script, String... arguments) throws Exception {
    Path file = Path.of(Scripts.class.getResource(script).toURI());
    List<String> command = new ArrayList<>(List.of(interpreter, file.toString()));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }
}
