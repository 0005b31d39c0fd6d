package io.weft.tests.architecture;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.lang.ArchRule;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.Folders;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Coding rules for all sources of Weft. */
class HabitsTest {
  private static final int LONGEST_FILE = 500;
  private static final Pattern MAGIC = Pattern.compile("\\bMAGIC =\\s+([^;]+);");

  private static JavaClasses main;
  private static JavaClasses tests;

  @BeforeAll
  static void readClasses() {
    main = Modules.mainClasses();
    tests = Modules.testClasses();
  }

  @Test
  void noThreadSleeps() {
    ArchRule rule =
        noClasses()
            .should()
            .callMethod(Thread.class, "sleep", long.class)
            .orShould()
            .callMethod(Thread.class, "sleep", long.class, int.class)
            .orShould()
            .callMethod(TimeUnit.class, "sleep", long.class)
            .because("a wait is for a condition and has a deadline");
    rule.check(main);
    rule.check(tests);
  }

  @Test
  void logsGoToSlf4j() {
    noClasses()
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(
            "java.util.logging..", "org.apache.log4j..", "org.apache.logging.log4j..")
        .check(main);
  }

  @Test
  void noCodeEndsTheJvm() {
    noClasses()
        .that()
        .resideOutsideOfPackage("io.weft.examples..")
        .should()
        .callMethod(System.class, "exit", int.class)
        .orShould()
        .callMethod(Runtime.class, "exit", int.class)
        .orShould()
        .callMethod(Runtime.class, "halt", int.class)
        .check(main);
  }

  @Test
  void namesSayWhatAClassIs() {
    noClasses()
        .that()
        .doNotHaveSimpleName("WeftShuffleManager")
        .should()
        .haveNameMatching(".*(Manager|Utils?|Helper|Impl)")
        .because("there is a better noun; Spark demands only the shuffle manager's")
        .check(main);
  }

  @Test
  void everyPackageIntroducesItself() {
    Set<Path> introduced = new LinkedHashSet<>();
    Set<Path> packages = new LinkedHashSet<>();
    for (String kind : List.of("main", "test", "test-fixtures")) {
      for (Path folder : Modules.sourceFolders(kind)) {
        collectPackages(folder, packages, introduced);
      }
    }
    assertThat(packages).isNotEmpty();
    assertThat(introduced).as("packages with a package-info.java").containsAll(packages);
  }

  @Test
  void mainFilesStayShort() throws IOException {
    List<String> tooLong = new ArrayList<>();
    for (Path folder : Modules.sourceFolders("main")) {
      for (Path file : javaFiles(folder)) {
        long lines = Files.readAllLines(file).size();
        if (lines > LONGEST_FILE) {
          tooLong.add(file.getFileName() + " has " + lines + " lines");
        }
      }
    }
    assertThat(tooLong).isEmpty();
  }

  /** Only the plugin has settings: lower modules name their options. */
  @Test
  void lowerModulesNameNoSettings() throws IOException {
    List<String> naming = new ArrayList<>();
    for (String module : List.of("gpu-collectives", "shuffle-transport")) {
      for (Path file : javaFiles(BuildTree.root().resolve(module).resolve("src/main/java"))) {
        if (Files.readString(file).contains("spark.weft.")) {
          naming.add(file.getFileName().toString());
        }
      }
    }
    assertThat(naming).as("files with a key spark.weft.*").isEmpty();
  }

  /** Else a reader may take the bytes of one layout for those of another. */
  @Test
  void noTwoLayoutsHaveTheSameMagicNumber() throws IOException {
    Map<String, List<Path>> layouts = new TreeMap<>();
    for (Path folder : Modules.sourceFolders("main")) {
      for (Path file : javaFiles(folder)) {
        MAGIC
            .matcher(Files.readString(file))
            .results()
            .forEach(
                found ->
                    layouts
                        .computeIfAbsent(found.group(1), number -> new ArrayList<>())
                        .add(file.getFileName()));
      }
    }
    assertThat(layouts).hasSizeGreaterThan(10);
    assertThat(layouts.values()).as("layouts of a number").allMatch(files -> files.size() == 1);
  }

  private static void collectPackages(Path folder, Set<Path> packages, Set<Path> introduced) {
    for (Path file : javaFiles(folder)) {
      Path inPackage = folder.relativize(file).getParent();
      packages.add(inPackage);
      if (file.endsWith("package-info.java")) {
        introduced.add(inPackage);
      }
    }
  }

  private static List<Path> javaFiles(Path folder) {
    return Folders.tree(folder).stream().filter(file -> file.toString().endsWith(".java")).toList();
  }
}
