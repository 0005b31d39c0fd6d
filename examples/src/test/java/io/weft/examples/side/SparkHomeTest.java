package io.weft.examples.side;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SparkHomeTest {
  @TempDir private Path folder;

  @Test
  void linksEveryJarEvenWithEqualNames() throws IOException {
    Path first =
        Files.writeString(Files.createDirectory(folder.resolve("a")).resolve("x.jar"), "1");
    Path second =
        Files.writeString(Files.createDirectory(folder.resolve("b")).resolve("x.jar"), "2");
    Path home = SideLauncher.SparkHome.assemble(folder.resolve("home"), List.of(first, second));
    assertThat(home.resolve("RELEASE")).isNotEmptyFile();
    try (Stream<Path> jars = Files.list(home.resolve("jars"))) {
      assertThat(jars.map(SparkHomeTest::content)).containsExactlyInAnyOrder("1", "2");
    }
  }

  private static String content(Path jar) {
    assertThat(jar).isSymbolicLink();
    try {
      return Files.readString(jar);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
