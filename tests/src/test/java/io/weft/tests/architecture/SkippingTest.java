package io.weft.tests.architecture;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import io.weft.tests.support.WeftCluster;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.opentest4j.TestAbortedException;

/** Rules for tests that may skip themselves. */
class SkippingTest {
  private static final String CONDITIONS = "org.junit.jupiter.api.condition..";

  /** Types by which a test has several executors or ranks, in one process or in several. */
  private static final Set<String> GANGS =
      Set.of(
          "io.weft.tests.support.WeftCluster",
          "io.weft.tests.support.StandaloneCluster",
          "io.weft.support.TestCluster",
          "io.weft.support.ExecutorProcess",
          "io.weft.transfers.Executors",
          "io.weft.transfers.TransferProcess",
          "io.weft.collectives.process.RankProcess",
          "io.weft.collectives.contract.RankGang");

  /** Tests that run only if a property requests them: long fuzzing. */
  private static final Set<String> ON_DEMAND = Set.of("io.weft.shuffle.fetch.DecoderFuzzTest");

  /** A GPU test skips itself if there is no GPU, with the reason. */
  private static final Set<String> GPUS = Set.of("io.weft.collectives.nccl", "io.weft.device.cuda");

  /** What may skip a test of several executors, also through an annotation. */
  private static final Set<String> SKIPPERS =
      Set.of(
          "io.weft.tests.support.NetworkNamespaces",
          "io.weft.tests.support.Browser",
          "io.weft.tests.support.DoubleGpus",
          "io.weft.transfers.TestGpus",
          "io.weft.testgpus.TestMachine",
          "io.weft.testgpus.UsesGpu",
          "io.weft.device.UsesDoubles",
          // Passes the skip of a rank's thread on to the test.
          "io.weft.collectives.contract.RankGang",
          // Adds executors' errors to failures, and leaves a skip as it is.
          "io.weft.tests.support.Workspace");

  /**
   * A skipped test is a gap that looks like success. Only three things may skip: the two hosts as
   * network namespaces, if the machine or the user lacks what they need, the doubles of GPUs, if
   * there is no compiler, and the browser, if there is none.
   */
  @Test
  void noTestOfSeveralExecutorsSkips() {
    JavaClasses tests = Modules.testClasses();
    assertThat(GANGS).allMatch(tests::contain);
    rule().check(tests.that(DescribedPredicate.not(samples())));
  }

  /** A condition that a test brings itself, and one behind an annotation. */
  @Test
  void conditionsOfItsOwnAreFound() {
    JavaClasses all =
        new ClassFileImporter()
            .importClasses(OwnCondition.class, Conditional.class, Direct.class, Annotated.class);
    for (Class<?> sample : List.of(Direct.class, Annotated.class)) {
      JavaClasses one = all.that(JavaClass.Predicates.type(sample));
      assertThat(rule().evaluate(one).hasViolation()).as(sample.getSimpleName()).isTrue();
    }
  }

  private static ArchRule rule() {
    return noClasses()
        .that(useSeveralExecutors())
        .should()
        .dependOnClassesThat()
        .belongToAnyOf(Assumptions.class, Disabled.class)
        .orShould()
        .dependOnClassesThat()
        .resideInAPackage(CONDITIONS)
        .orShould()
        .dependOnClassesThat(skip())
        .because("a skipped test would count as a success");
  }

  /** Conditions and users of assumptions, and the annotations that bring them. */
  private static DescribedPredicate<JavaClass> skip() {
    return DescribedPredicate.describe(
        "skip tests",
        type ->
            !SKIPPERS.contains(type.getName())
                && (skips(type) || (type.isAnnotation() && uses(type, SkippingTest::skips))));
  }

  private static boolean skips(JavaClass type) {
    return !type.getPackageName().startsWith("org.junit")
        && !type.getPackageName().startsWith("org.assertj")
        && (type.isAssignableTo(ExecutionCondition.class)
            || uses(type, used -> used.isEquivalentTo(Assumptions.class))
            || uses(type, used -> used.isEquivalentTo(TestAbortedException.class)));
  }

  private static boolean uses(JavaClass type, Predicate<JavaClass> what) {
    return type.getDirectDependenciesFromSelf().stream()
        .map(Dependency::getTargetClass)
        .anyMatch(what);
  }

  private static DescribedPredicate<JavaClass> samples() {
    return DescribedPredicate.describe(
        "samples", type -> type.getName().startsWith(SkippingTest.class.getName()));
  }

  private static final class OwnCondition implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      return ConditionEvaluationResult.disabled("a sample");
    }
  }

  @ExtendWith(OwnCondition.class)
  @Retention(RetentionPolicy.RUNTIME)
  private @interface Conditional {}

  @ExtendWith(OwnCondition.class)
  private interface Direct {
    void on(WeftCluster cluster);
  }

  @Conditional
  private interface Annotated {
    void on(WeftCluster cluster);
  }

  private static DescribedPredicate<JavaClass> useSeveralExecutors() {
    return DescribedPredicate.describe(
        "use several executors",
        type ->
            !ON_DEMAND.contains(type.getName())
                && !GPUS.contains(type.getPackageName())
                && type.getDirectDependenciesFromSelf().stream()
                    .anyMatch(used -> GANGS.contains(used.getTargetClass().getName())));
  }
}
