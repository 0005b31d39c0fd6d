package io.weft.spark.feed;

import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Runs a script of the test resources in a Python that has numpy. */
final class PythonScript {
  /** The interpreter on the path, and that of Debian's packages. */
  private static final List<String> INTERPRETERS = List.of("python3", "/usr/bin/python3");

  /** The folder of the Python package; the folder for GPU machines has it beside the tests. */
  static final String PACKAGE = packageFolder();

  private PythonScript() {}

  private static String packageFolder() {
    String root = System.getProperty("weft.rootFolder");
    return root == null
        ? Path.of(PythonScript.class.getResource("/python").getPath()).toString()
        : Path.of(root, "spark-plugin", "src", "main", "python").toString();
  }

  /** Returns the output of a script, as JSON. Without numpy the test is skipped. */
  static JsonNode run(String script, String... arguments) throws Exception {
    return Scripts.run(withNumpy(), script, arguments);
  }

  /** Like {@link #run}, in an interpreter that has another library too. */
  static JsonNode runWith(String library, String script, String... arguments) throws Exception {
    return Scripts.run(interpreterWith(library), script, arguments);
  }

  /** Whether a command line of Python exits with 0. Without numpy the test is skipped. */
  static boolean succeeds(String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of(withNumpy()));
    command.addAll(List.of(arguments));
    return Scripts.succeeds(command.toArray(String[]::new));
  }

  /** An interpreter that has numpy and another library, for which the test has asked. */
  static String interpreterWith(String library) throws Exception {
    return interpreter(library).orElseThrow();
  }

  /** Whether an interpreter has numpy and another library. */
  static boolean has(String library) throws Exception {
    return interpreter(library).isPresent();
  }

  /** Starts a script that the test communicates with and ends. */
  static Process start(String script, String... arguments) throws Exception {
    return Scripts.start(withNumpy(), script, arguments);
  }

  private static String withNumpy() throws Exception {
    Optional<String> found = interpreter("numpy");
    return found.isPresent()
        ? found.get()
        : abort("no python3 with numpy: Debian's package is python3-numpy");
  }

  private static Optional<String> interpreter(String library) throws Exception {
    for (String python : INTERPRETERS) {
      if (Scripts.isThere(python) && Scripts.succeeds(python, "-c", "import numpy, " + library)) {
        return Optional.of(python);
      }
    }
    return Optional.empty();
  }
}
