package io.weft.tests.architecture;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import io.weft.tests.support.BuildTree;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The modules in the order of their dependencies, the lowest first, as the build made them. */
final class Modules {
  static final List<String> NAMES =
      List.of("gpu-collectives", "shuffle-transport", "spark-plugin", "examples");

  private Modules() {}

  /** Read once for all tests of this JVM, because reading takes seconds. */
  private static final class Main {
    static final JavaClasses CLASSES = classes("target/classes");
  }

  /** Also read once. */
  private static final class Tests {
    static final JavaClasses CLASSES = classes("target/test-classes");
  }

  /** The main classes of all modules. */
  static JavaClasses mainClasses() {
    return Main.CLASSES;
  }

  /** The test classes of all modules, those of {@code tests} too. */
  static JavaClasses testClasses() {
    return Tests.CLASSES;
  }

  /** Classes of the module. */
  static DescribedPredicate<JavaClass> in(String module) {
    String folder = BuildTree.root().resolve(module).toUri().getPath();
    return DescribedPredicate.describe(
        "in module " + module,
        type ->
            type.getSource()
                // A class of a jar has only a URI, no path.
                .map(source -> source.getUri().toString().contains(folder))
                .orElse(false));
  }

  /** The folders of Java sources, main or test, of all modules. */
  static List<Path> sourceFolders(String kind) {
    return Stream.concat(NAMES.stream(), Stream.of("tests"))
        .map(
            module -> BuildTree.root().resolve(module).resolve("src").resolve(kind).resolve("java"))
        .filter(Files::isDirectory)
        .toList();
  }

  private static JavaClasses classes(String folder) {
    List<Path> paths =
        Stream.concat(NAMES.stream(), Stream.of("tests"))
            .map(module -> BuildTree.root().resolve(module).resolve(folder))
            .filter(Files::isDirectory)
            .toList();
    return new ClassFileImporter().importPaths(paths);
  }
}
