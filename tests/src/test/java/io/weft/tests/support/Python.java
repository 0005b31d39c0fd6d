package io.weft.tests.support;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;

/** A Python with numpy, with Weft's package as pip would install it. */
public final class Python {
  private final String interpreter;
  private final Path packages;

  private Python(String interpreter, Path packages) {
    this.interpreter = interpreter;
    this.packages = packages;
  }

  /** Unpacks the wheel into an empty folder. Without numpy the test is skipped. */
  public static Python install(Path wheel, Path packages) {
    String interpreter = withNumpy();
    ChildProcess.run(interpreter, "-m", "zipfile", "-e", wheel.toString(), packages.toString());
    return new Python(interpreter, packages);
  }

  /** The interpreter on the path, or that of Debian's packages. */
  private static String withNumpy() {
    for (String python : List.of("python3", "/usr/bin/python3")) {
      if (isThere(python) && hasNumpy(python)) {
        return python;
      }
    }
    Assumptions.abort("no python3 with numpy: Debian's package is python3-numpy");
    return "";
  }

  private static boolean isThere(String program) {
    return Arrays.stream(System.getenv("PATH").split(":"))
        .anyMatch(folder -> Files.isExecutable(Path.of(folder).resolve(program)));
  }

  private static boolean hasNumpy(String python) {
    List<String> command = List.of(python, "-c", "import numpy; print('has numpy')");
    try (ChildProcess child = ChildProcess.start(python, command, Path.of("/"), Map.of())) {
      return child.awaitExit(Duration.ofMinutes(3)) == 0;
    }
  }

  /** Starts a program in this Python. */
  public ChildProcess start(String name, String program, Object... arguments) {
    List<String> command = new ArrayList<>(List.of(interpreter, "-c", program));
    for (Object argument : arguments) {
      command.add(argument.toString());
    }
    return ChildProcess.start(
        name,
        command,
        packages,
        Map.of("PYTHONPATH", packages.toString(), "PYTHONUNBUFFERED", "1"));
  }
}
