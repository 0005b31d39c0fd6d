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

/** Tests that leave themselves out. */
class SkippingTest {
  private static final String CONDITIONS = "org.junit.jupiter.api.condition..";

  /** What a test has several executors or ranks by, in one process or in several. */
  private static final Set<String> GANGS =
      Set.of(
          "io.weft.tests.support.WeftCluster",
          "io.weft.tests.support.StandaloneCluster",
          "io.weft.support.TestCluster",
          "io.weft.support.ExecutorProcess",
          "io.weft.crosshost.Executors",
          "io.weft.crosshost.TransferProcess",
          "io.weft.collectives.process.RankProcess",
          "io.weft.collectives.contract.RankGang");

  /** Asked for by a property, on top of what always runs: measuring, and fuzzing for minutes. */
  private static final Set<String> ON_DEMAND =
      Set.of("io.weft.exchange.TrafficSpeedTest", "io.weft.transfer.DecoderFuzzTest");

  /** A test of GPUs skips itself where there is none, with the reason. */
  private static final Set<String> GPUS = Set.of("io.weft.collectives.nccl", "io.weft.device.cuda");

  /**
   * A skipped test is a gap that looks like success. The exceptions are made by the extension of
   * two hosts as network namespaces, where the machine or the user lacks what they need, and by the
   * doubles of GPUs, where there is no compiler for them.
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
        .because("it would look as if it had succeeded")
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
