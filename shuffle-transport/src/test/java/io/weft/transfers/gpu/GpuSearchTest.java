package io.weft.transfers.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.probe.Capabilities;
import io.weft.device.probe.Capability;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.Finding;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.transfers.TestGpus;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The GPU that an executor announces, or the reason why there is none. */
class GpuSearchTest {
  private static Capabilities machine(boolean nccl) {
    Capabilities machine = CapabilityProbe.run(ProbeOptions.defaults());
    for (Capability there : new Capability[] {Capability.CUDA_DEVICES, Capability.JNA}) {
      machine = machine.with(there, new Finding(true, "for a test"));
    }
    return machine.with(Capability.NCCL, new Finding(nccl, "of a test"));
  }

  @Test
  void theFirstGpuIsTakenWithItsNccl() {
    TestGpus.assumeDoubles();
    GpuEnd found = GpuSearch.find(machine(true), TestGpus.options(), "");
    assertThat(found.hasNccl()).as(found.toString()).isTrue();
    assertThat(found.ordinal()).isZero();
    assertThat(found.nccl()).isEqualTo("2.30.7");
    assertThat(found.uuid()).isEqualTo(TestGpus.cuda().gpus().get(0).uuid().toString());
    TestGpus.assertClean();
  }

  @Test
  void theGpuThatSparkGaveIsTaken() {
    TestGpus.assumeDoubles();
    GpuEnd byNumber = GpuSearch.find(machine(true), TestGpus.options(), "3");
    assertThat(byNumber.ordinal()).isEqualTo(3);
    for (String kind : new String[] {"GPU-", "MIG-", ""}) {
      String uuid = kind + byNumber.uuid();
      assertThat(GpuSearch.find(machine(true), TestGpus.options(), uuid)).isEqualTo(byNumber);
    }
    assertThat(GpuSearch.find(machine(true), TestGpus.options(), "99").obstacle())
        .startsWith("the executor was given GPU 99, but its process sees 8: ");
  }

  @Test
  void aGpuWithoutNcclIsStillAGpu() {
    TestGpus.assumeDoubles();
    GpuEnd found = GpuSearch.find(machine(false), TestGpus.options(), "");
    assertThat(found.isThere()).isTrue();
    assertThat(found.obstacle()).isEqualTo("nccl: of a test");
  }

  @Test
  void theDriverIsAskedWhereFilesShowNoGpu() {
    TestGpus.assumeDoubles();
    Capabilities silent =
        machine(true).with(Capability.CUDA_DEVICES, new Finding(false, "none of a test"));
    assertThat(GpuSearch.find(silent, TestGpus.options(), "").ordinal()).isZero();
    assertThat(GpuSearch.find(silent, TestGpus.options(), "99").obstacle())
        .startsWith("cuda devices: none of a test; the executor was given GPU 99");
  }

  @Test
  void withoutAGpuAndADriverNoLibraryIsLoaded(@TempDir Path empty) {
    Capabilities without =
        machine(true).with(Capability.CUDA_DEVICES, new Finding(false, "none of a test"));
    ProbeOptions nothing = ProbeOptions.defaults().withRoot(empty).withEnvironment(Map.of());
    assertThat(GpuSearch.find(without, nothing, "").obstacle())
        .isEqualTo("cuda devices: none of a test");
    Capabilities withoutJna = machine(true).with(Capability.JNA, new Finding(false, "no jar"));
    assertThat(GpuSearch.find(withoutJna, ProbeOptions.defaults(), "").obstacle())
        .isEqualTo("jna: no jar");
  }

  @Test
  void aDriverThatDoesNotAnswerIsNotWaitedForLong() {
    CountDownLatch never = new CountDownLatch(1);
    GpuEnd found =
        GpuSearch.ask(
            () -> {
              awaitQuietly(never);
              return GpuEnd.without("late");
            },
            Duration.ofMillis(50));
    assertThat(found.obstacle()).contains("did not answer within 50 ms");
    never.countDown();
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
