package io.weft.tests.architecture;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.assignableTo;
import static com.tngtech.archunit.core.domain.properties.HasModifiers.Predicates.modifier;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMember;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.domain.JavaType;
import io.weft.tests.support.BuildTree;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Every main class is reached from an entry point, read from the class files. */
class ReachTest {
  /** What Spark, spark-rapids and the shell load by name. */
  private static final List<String> LOADED_BY_NAME =
      List.of(
          "io.weft.spark.WeftPlugin",
          "io.weft.spark.WeftKryoRegistrator",
          "io.weft.spark.feed.source.WeftSource",
          "io.weft.spark.sql.WeftSessionExtensions",
          "io.weft.spark.shuffle.WeftShuffleManager",
          "io.weft.spark.rapids.WeftRapidsTransport",
          "io.weft.spark.ui.WeftHistory",
          "io.weft.examples.Weft");

  /** A row of docs/api.md begins with the full name of a public class. */
  private static final Pattern API_ROW =
      Pattern.compile("^\\| `(io\\.weft\\.[\\w.]+)` \\|", Pattern.MULTILINE);

  @Test
  void everyMainClassIsReached() throws IOException {
    JavaClasses main = Modules.mainClasses();
    Set<String> entries = new TreeSet<>(LOADED_BY_NAME);
    entries.addAll(api());
    assertThat(names(main)).as("entry points that are classes").containsAll(entries);
    assertThat(notReached(main, entries)).as("main classes that no entry point reaches").isEmpty();
  }

  /** Other code creates them by reflection: Spark its plans' nodes, too, when it copies a plan. */
  @Test
  void whatIsCreatedByReflectionIsPublic() throws IOException {
    JavaClasses main = Modules.mainClasses();
    Set<String> names = new TreeSet<>(LOADED_BY_NAME);
    names.addAll(api());
    classes()
        .that(
            DescribedPredicate.describe("are entry points", type -> names.contains(type.getName())))
        .or(
            assignableTo("org.apache.spark.sql.catalyst.trees.TreeNode")
                .and(DescribedPredicate.not(modifier(JavaModifier.ABSTRACT))))
        .should()
        .bePublic()
        .check(main);
  }

  /** A caller cannot name a type that is not public, even if a public method returns it. */
  @Test
  void publicSignaturesHavePublicTypes() throws IOException {
    JavaClasses main = Modules.mainClasses();
    Set<String> seen = new HashSet<>(api());
    Deque<JavaClass> open = new ArrayDeque<>();
    seen.forEach(name -> open.add(main.get(name)));
    Set<String> hidden = new TreeSet<>();
    while (!open.isEmpty()) {
      JavaClass type = open.pop();
      if (!isPublic(type)) {
        hidden.add(type.getName());
      }
      for (JavaClass named : namedBy(type)) {
        if (main.contain(named.getName()) && seen.add(named.getName())) {
          open.add(main.get(named.getName()));
        }
      }
    }
    assertThat(hidden).as("types in signatures of the public API that are not public").isEmpty();
  }

  private static boolean isPublic(JavaClass type) {
    return type.getModifiers().contains(JavaModifier.PUBLIC)
        && type.getEnclosingClass().map(ReachTest::isPublic).orElse(true);
  }

  /** The types in the signatures that a caller of a class sees. */
  private static Set<JavaClass> namedBy(JavaClass type) {
    Set<JavaClass> named = new HashSet<>();
    type.getCodeUnits().stream()
        .filter(ReachTest::isVisible)
        .forEach(
            unit -> {
              unit.getParameterTypes().forEach(each -> named.addAll(rawTypes(each)));
              named.addAll(rawTypes(unit.getReturnType()));
            });
    type.getFields().stream()
        .filter(ReachTest::isVisible)
        .forEach(field -> named.addAll(rawTypes(field.getType())));
    return named;
  }

  private static boolean isVisible(JavaMember member) {
    return member.getModifiers().contains(JavaModifier.PUBLIC)
        && !member.getModifiers().contains(JavaModifier.SYNTHETIC);
  }

  private static Set<JavaClass> rawTypes(JavaType type) {
    return type.getAllInvolvedRawTypes();
  }

  private static Set<String> api() throws IOException {
    Set<String> api = new TreeSet<>();
    Matcher rows = API_ROW.matcher(Files.readString(BuildTree.root().resolve("docs/api.md")));
    while (rows.find()) {
      api.add(rows.group(1));
    }
    assertThat(api).as("rows of docs/api.md").isNotEmpty();
    return api;
  }

  private static Set<String> names(JavaClasses classes) {
    Set<String> names = new TreeSet<>();
    classes.forEach(type -> names.add(type.getName()));
    return names;
  }

  private static String file(String className) {
    int nested = className.indexOf('$');
    return nested < 0 ? className : className.substring(0, nested);
  }

  private static Set<String> notReached(JavaClasses main, Set<String> entries) {
    Set<String> reached = new HashSet<>();
    Deque<JavaClass> open = new ArrayDeque<>();
    for (String entry : entries) {
      reached.add(entry);
      open.add(main.get(entry));
    }
    while (!open.isEmpty()) {
      for (Dependency dependency : open.pop().getDirectDependenciesFromSelf()) {
        JavaClass used = dependency.getTargetClass().getBaseComponentType();
        if (main.contain(used.getName()) && reached.add(used.getName())) {
          open.add(main.get(used.getName()));
        }
      }
    }
    // Nested classes count with their file: the compiler makes some that no bytecode names.
    Set<String> missing = new TreeSet<>();
    names(main).forEach(name -> missing.add(file(name)));
    reached.forEach(name -> missing.remove(file(name)));
    missing.removeIf(name -> name.endsWith("package-info"));
    return missing;
  }
}
