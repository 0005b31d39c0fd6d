package io.weft.tests.architecture;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import java.util.Set;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

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

  /** Tests that run only if a property requests them: measurements, and long fuzzing. */
  private static final Set<String> ON_DEMAND =
      Set.of("io.weft.shuffle.TrafficSpeedTest", "io.weft.shuffle.fetch.DecoderFuzzTest");

  /** A GPU test skips itself if there is no GPU, with the reason. */
  private static final Set<String> GPUS = Set.of("io.weft.collectives.nccl", "io.weft.device.cuda");

  /**
   * A skipped test is a gap that looks like success. Only two extensions may skip: the two hosts as
   * network namespaces, if the machine or the user lacks what they need, and the doubles of GPUs,
   * if there is no compiler.
   */
  @Test
  void noTestOfSeveralExecutorsSkips() {
    JavaClasses tests = Modules.testClasses();
    assertThat(GANGS).allMatch(tests::contain);
    noClasses()
        .that(useSeveralExecutors())
        .should()
        .dependOnClassesThat()
        .belongToAnyOf(Assumptions.class, Disabled.class)
        .orShould()
        .dependOnClassesThat()
        .resideInAPackage(CONDITIONS)
        .because("a skipped test would count as a success")
        .check(tests);
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
