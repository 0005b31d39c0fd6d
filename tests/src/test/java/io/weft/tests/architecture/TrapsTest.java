package io.weft.tests.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaMethod;
import io.weft.tests.support.BuildTree;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Verifies that every trap of docs/traps.md has tests, and that these exist. */
class TrapsTest {
  private static final int TRAPS = 23;
  private static final Pattern ROW =
      Pattern.compile("^\\| (\\d+) \\|.*\\|(.*)\\|$", Pattern.MULTILINE);
  private static final Pattern TEST = Pattern.compile("`(\\w+\\.\\w+)`");

  @Test
  void everyTrapHasTestsThatExist() throws IOException {
    Set<String> tests =
        Modules.testClasses().stream()
            .flatMap(type -> type.getMethods().stream())
            .filter(TrapsTest::isTest)
            .map(method -> name(method.getOwner()) + "." + method.getName())
            .collect(Collectors.toSet());
    List<Integer> traps = new ArrayList<>();
    Matcher rows = ROW.matcher(Files.readString(BuildTree.root().resolve("docs/traps.md")));
    while (rows.find()) {
      traps.add(Integer.valueOf(rows.group(1)));
      List<String> named =
          TEST.matcher(rows.group(2)).results().map(found -> found.group(1)).toList();
      assertThat(named).as("tests of trap %s", rows.group(1)).isNotEmpty();
      assertThat(tests).as("tests of trap %s", rows.group(1)).containsAll(named);
    }
    assertThat(traps).isEqualTo(IntStream.rangeClosed(1, TRAPS).boxed().toList());
  }

  private static String name(JavaClass type) {
    return type.getSimpleName();
  }

  /** Matches by name, because jqwik and parameterized tests have other annotations. */
  private static boolean isTest(JavaMethod method) {
    return method.getAnnotations().stream()
        .anyMatch(
            annotation ->
                Set.of("Test", "ParameterizedTest", "Property")
                    .contains(annotation.getRawType().getSimpleName()));
  }
}
