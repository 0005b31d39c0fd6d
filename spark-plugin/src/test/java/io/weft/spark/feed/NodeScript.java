package io.weft.spark.feed;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs a script of the test resources in Node.js. */
final class NodeScript {
  private static final String ARROW = "apache-arrow@21.2.0";

  private NodeScript() {}

  /**
   * Returns Arrow JavaScript, which npm fetches once into the build folder. If it cannot, the test
   * is skipped with the reason.
   */
  static Path arrow() throws Exception {
    for (String program : List.of("node", "npm")) {
      assumeTrue(Scripts.isThere(program), program + " is not on the path");
    }
    Path folder = Path.of("target", "npm").toAbsolutePath();
    Path library = folder.resolve(Path.of("node_modules", "apache-arrow"));
    if (!Files.exists(library.resolve("package.json"))) {
      Files.createDirectories(folder);
      Path log = folder.resolve("npm.log");
      Process npm =
          new ProcessBuilder("npm", "install", "--ignore-scripts", "--prefix", ".", ARROW)
              .directory(folder.toFile())
              .redirectErrorStream(true)
              .redirectOutput(log.toFile())
              .start();
      boolean ended = npm.waitFor(120, TimeUnit.SECONDS);
      npm.destroyForcibly();
      assumeTrue(
          ended && npm.exitValue() == 0,
          () -> "npm could not fetch " + ARROW + ": " + contents(log));
    }
    return library;
  }

  private static String contents(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      return e.toString();
    }
  }

  /** Returns the output of a script, as JSON. */
  static JsonNode run(String script, String... arguments) throws Exception {
    return Scripts.run("node", script, arguments);
  }
}
