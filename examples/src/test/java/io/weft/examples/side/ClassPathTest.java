package io.weft.examples.side;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ClassPathTest {
  @TempDir private Path folder;

  private Path jar(String name) throws IOException {
    return Files.createFile(folder.resolve(name));
  }

  @Test
  void separatesUserJarsFromSparkJars() throws IOException {
    Path weft = jar("weft-spark-0.1.0.jar");
    Path tpch = jar("tpch-1.2.jar");
    Path tpcds = jar("tpcds-1.4.jar");
    Path spark = jar("spark-core_2.13-4.1.3.jar");
    SideLauncher.ClassPath classPath =
        SideLauncher.ClassPath.split(List.of(spark, weft, tpch, tpcds));
    assertThat(classPath.spark()).containsExactly(spark);
    assertThat(classPath.user()).containsExactly(weft, tpch, tpcds);
    assertThat(classPath.allJars()).isTrue();
  }

  @Test
  void classFoldersBelongToTheUser() throws IOException {
    Path classes = Files.createDirectory(folder.resolve("classes"));
    SideLauncher.ClassPath classPath =
        SideLauncher.ClassPath.split(List.of(classes, jar("weft-spark-0.1.0.jar")));
    assertThat(classPath.user()).contains(classes);
    assertThat(classPath.allJars()).isFalse();
  }

  @Test
  void thisProcessHasBothParts() {
    SideLauncher.ClassPath here = SideLauncher.ClassPath.current();
    assertThat(here.spark()).anyMatch(jar -> jar.getFileName().toString().startsWith("spark-sql_"));
    assertThat(here.user()).anyMatch(entry -> entry.toString().contains("examples"));
  }
}
