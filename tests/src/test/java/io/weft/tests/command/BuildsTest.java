package io.weft.tests.command;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.BuildTree;
import io.weft.tests.support.Folders;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Checks when {@code bin/weft} builds, in a separate checkout, with fake Maven and Java commands
 * that only record their calls.
 */
class BuildsTest {
  private static final List<String> MODULES =
      List.of("gpu-collectives", "shuffle-transport", "spark-plugin", "examples");

  @TempDir Path root;

  private Path built;

  @BeforeEach
  void checkOut() throws IOException {
    script("bin/weft", Files.readString(BuildTree.root().resolve("bin/weft")));
    write("pom.xml", "<project>\n  <version>1</version>\n</project>\n");
    StringBuilder jars = new StringBuilder("touch");
    StringBuilder classPath = new StringBuilder();
    for (String module : MODULES) {
      write(module + "/pom.xml", "<project/>\n");
      write(module + "/src/A.java", "class A {}\n");
      jars.append(' ').append(module).append("/target/weft-").append(module).append("-1.jar");
      classPath.append(root.resolve(module + "/target/weft-" + module + "-1.jar")).append(':');
    }
    built = root.resolve("builds");
    script(
        "tools/mvn",
        "#!/usr/bin/env bash\nmkdir -p {%s}/target\n%s\nprintf %%s '%s' >examples/target/class-path\necho built >>%s\n"
            .formatted(
                String.join(",", MODULES),
                jars,
                classPath.substring(0, classPath.length() - 1),
                built));
    script("jdk/bin/javac", "#!/usr/bin/env bash\necho javac 17.0.1\n");
    script("jdk/bin/java", "#!/usr/bin/env bash\necho \"$@\"\n");
    for (Path file : Folders.tree(root)) {
      Files.setLastModifiedTime(file, FileTime.from(Instant.now().minusSeconds(60)));
    }
  }

  private void write(String name, String text) throws IOException {
    Path file = root.resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }

  private void script(String name, String text) throws IOException {
    write(name, text);
    Files.setPosixFilePermissions(root.resolve(name), PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  /** Runs the doctor; returns the number of builds since the beginning. */
  private int builds() throws IOException, InterruptedException {
    ProcessBuilder command = new ProcessBuilder(root.resolve("bin/weft").toString(), "doctor");
    command.environment().put("PATH", root.resolve("tools") + ":" + System.getenv("PATH"));
    command.environment().put("JAVA_HOME", root.resolve("jdk").toString());
    Path log = root.resolve("log");
    Process process = command.redirectErrorStream(true).redirectOutput(log.toFile()).start();
    assertThat(process.waitFor(1, TimeUnit.MINUTES)).as("bin/weft has ended").isTrue();
    assertThat(process.exitValue()).as(Files.readString(log)).isZero();
    assertThat(Files.readString(log)).contains("io.weft.examples.Weft doctor");
    return Files.readAllLines(built).size();
  }

  @Test
  void itBuildsOnceAndAgainWhenSomethingHasChanged() throws Exception {
    assertThat(builds()).isEqualTo(1);
    assertThat(builds()).isEqualTo(1);
    write("spark-plugin/src/A.java", "class A { int b; }\n");
    Files.setLastModifiedTime(
        root.resolve("spark-plugin/src/A.java"), FileTime.from(Instant.now().plusSeconds(5)));
    assertThat(builds()).isEqualTo(2);
  }

  /** Simulates a Maven clean of one module: the other modules still refer to its jar. */
  @Test
  void itBuildsAgainWhenAJarOfAnyModuleIsGone() throws Exception {
    int builds = builds();
    for (String module : MODULES) {
      Folders.delete(root.resolve(module + "/target"));
      builds++;
      assertThat(builds()).as("builds after a clean of %s", module).isEqualTo(builds);
      assertThat(builds()).isEqualTo(builds);
    }
  }
}
