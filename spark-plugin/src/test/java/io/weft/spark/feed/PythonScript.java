package io.weft.spark.feed;

import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;

/** Runs a script of the test resources in a Python that has numpy. */
final class PythonScript {
  /** The interpreter on the path, and that of Debian's packages. */
  private static final List<String> INTERPRETERS = List.of("python3", "/usr/bin/python3");

  private PythonScript() {}

  /** Returns the output of a script, as JSON. Without numpy the test is skipped. */
  static JsonNode run(String script, String... arguments) throws Exception {
    return Scripts.run(withNumpy(), script, arguments);
  }

  /** Starts a script that the test communicates with and ends. */
  static Process start(String script, String... arguments) throws Exception {
    return Scripts.start(withNumpy(), script, arguments);
  }

  private static String withNumpy() throws Exception {
    for (String python : INTERPRETERS) {
      if (Scripts.isThere(python) && Scripts.succeeds(python, "-c", "import numpy")) {
        return python;
      }
    }
    return abort("no python3 with numpy: Debian's package is python3-numpy");
  }
}
