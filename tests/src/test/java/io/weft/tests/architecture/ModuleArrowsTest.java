package io.weft.tests.architecture;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Modules depend in one direction over four levels, and packages have no cycles. */
class ModuleArrowsTest {
  private static JavaClasses classes;

  @BeforeAll
  static void readClasses() {
    classes = Modules.mainClasses();
  }

  @Test
  void everyModuleHasClassesToCheck() {
    for (String module : Modules.NAMES) {
      assertThat(classes.stream().filter(Modules.in(module))).as(module).isNotEmpty();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "gpu-collectives, shuffle-transport",
    "gpu-collectives, spark-plugin",
    "gpu-collectives, examples",
    "shuffle-transport, spark-plugin",
    "shuffle-transport, examples",
    "spark-plugin, examples"
  })
  void nothingPointsUp(String lower, String upper) {
    check(noClasses().that(Modules.in(lower)).should().dependOnClassesThat(Modules.in(upper)));
  }

  /** Each package counts by itself, subpackages and their parents too. */
  @Test
  void packagesHaveNoCycles() {
    check(SlicesRuleDefinition.slices().assignedFrom(new Packages()).should().beFreeOfCycles());
  }

  @Test
  void noClassDependsOnThePluginsEntryPoint() {
    check(
        noClasses()
            .that()
            .resideInAPackage("io.weft.spark.*..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.weft.spark"));
  }

  /** The jar therefore works without either library. */
  @Test
  void noClassNeedsCudfOrSparkRapids() {
    check(
        noClasses()
            .that()
            .resideOutsideOfPackages("io.weft.spark.gpu.cudf..", "io.weft.spark.rapids..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("ai.rapids..", "com.nvidia..", "io.weft.spark.gpu.cudf.."));
  }

  @Test
  void memoryAndCollectivesKnowNothingOfSpark() {
    check(
        noClasses()
            .that(Modules.in("gpu-collectives"))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("org.apache.spark..", "scala.."));
  }

  @Test
  void transportKnowsNothingOfSql() {
    check(
        noClasses()
            .that(Modules.in("shuffle-transport"))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("org.apache.spark.sql..", "org.apache.arrow.."));
  }

  private static void check(ArchRule rule) {
    rule.check(classes);
  }

  private static final class Packages implements SliceAssignment {
    @Override
    public SliceIdentifier getIdentifierOf(JavaClass type) {
      return type.getPackageName().startsWith("io.weft")
          ? SliceIdentifier.of(type.getPackageName())
          : SliceIdentifier.ignore();
    }

    @Override
    public String getDescription() {
      return "packages";
    }
  }
}
