package io.weft.tensor.dlpack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** numpy uses tensors of a JVM in its own process, reads them in place and returns them. */
class DlpackNumpyTest {
  private static final List<String> INTERPRETERS = List.of("python3", "/usr/bin/python3");

  @TempDir Path folder;

  @Test
  void numpyReadsTensorsInPlaceAndReturnsThem() throws Exception {
    Path jvm = Path.of(System.getProperty("java.home"), "lib", "server", "libjvm.so");
    assumeTrue(Files.exists(jvm), () -> jvm + " does not exist");
    Path script = Path.of(DlpackNumpyTest.class.getResource("read-dlpack.py").toURI());
    String classPath =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    int exit = run(List.of(python(), script.toString(), jvm.toString(), classPath));
    assertThat(exit).as(output()).isZero();
    assertThat(output()).contains("dltensor: read in place, given back");
  }

  /** With numpy 1.23 or newer, the first version with from_dlpack. */
  private String python() throws Exception {
    for (String python : INTERPRETERS) {
      try {
        if (run(List.of(python, "-c", "import numpy; numpy.from_dlpack")) == 0) {
          return python;
        }
      } catch (IOException e) {
        // There is no interpreter of this name.
      }
    }
    assumeTrue(false, "no python3 with numpy 1.23 or newer: Debian's package is python3-numpy");
    return "";
  }

  private int run(List<String> command) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("output").toFile())
            .start();
    try {
      assertThat(process.waitFor(120, TimeUnit.SECONDS)).as(command.get(0)).isTrue();
      return process.exitValue();
    } finally {
      process.destroyForcibly();
    }
  }

  private String output() throws IOException {
    return Files.readString(folder.resolve("output"), StandardCharsets.UTF_8);
  }
}
