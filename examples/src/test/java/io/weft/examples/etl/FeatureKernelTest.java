package io.weft.examples.etl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FeatureKernelTest {
  private static final Path COMMITTED =
      Path.of("src", "main", "resources", "io", "weft", "examples", "etl", "features.ptx");
  private static final Path COMPILE = Path.of("..", "gpu-collectives", "src/main/cuda/compile");
  private static final Pattern RELEASE = Pattern.compile("(?:release|nvcc) ([0-9.]+)[,:]");

  @TempDir Path folder;

  private static String output(String... command) throws Exception {
    Process process;
    try {
      process = new ProcessBuilder(command).redirectErrorStream(true).start();
    } catch (IOException e) {
      assumeTrue(false, () -> command[0] + " cannot run: " + e.getMessage());
      throw e;
    }
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(2, TimeUnit.MINUTES)).as(output).isTrue();
    assertThat(process.exitValue()).as(output).isZero();
    return output;
  }

  private static String release(String text) {
    Matcher matcher = RELEASE.matcher(text);
    assertThat(matcher.find()).as(text).isTrue();
    return matcher.group(1);
  }

  /** Another release of nvcc writes other PTX for the same source. */
  @Test
  void theCommittedPtxIsThatOfTheSource() throws Exception {
    String here = release(output("nvcc", "--version"));
    String made = release(Files.readString(COMMITTED));
    assumeTrue(here.equals(made), () -> "made by nvcc " + made + ", here is " + here);
    String unused = output(COMPILE.toString(), "" + folder, "src/main/cuda", "features");
    assertThat(folder.resolve("features.ptx")).hasSameTextualContentAs(COMMITTED);
  }
}
