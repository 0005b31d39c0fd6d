package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.contract.RankGang;
import io.weft.device.probe.Capabilities;
import io.weft.device.probe.Capability;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.Finding;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the paths that the machine's capabilities select, and the loading before the start. */
class HostOptionsTest {
  private static final Capabilities MACHINE = CapabilityProbe.thisMachine();
  private static final Finding NO = new Finding(false, "the test took it away");
  private static final Finding YES = new Finding(true, "the test put it there");

  @TempDir Path folder;

  @Test
  void theProbeRunsOnce() {
    assertThat(CapabilityProbe.thisMachine()).isSameAs(MACHINE);
    assertThat(HostOptions.defaults().machine()).isSameAs(MACHINE);
  }

  @Test
  void segmentsGoWhereTheMachineHasSharedMemory() {
    Capabilities with = MACHINE.with(Capability.SHARED_MEMORY, YES);
    Capabilities without = MACHINE.with(Capability.SHARED_MEMORY, NO);
    assertThat(HostOptions.on(with).folder().getParent()).isEqualTo(with.sharedFolder());
    assertThat(HostOptions.on(without).folder().getParent())
        .isEqualTo(Path.of(System.getProperty("java.io.tmpdir")));
    assertThat(without.choices())
        .anySatisfy(choice -> assertThat(choice).contains("mapped as files", "took it away"));
  }

  private RankGang apart(Capabilities machine, String bindHost) {
    CommunicatorFactory factory =
        (bootstrap, options) ->
            new HostCommunicators(
                    HostOptions.on(machine)
                        .withFolder(folder.resolve("host-" + bootstrap.rank()))
                        .withHostIdentity("host-" + bootstrap.rank())
                        .withBindHost(bindHost))
                .create(bootstrap, options);
    return RankGang.open(factory, 2, Duration.ofSeconds(60));
  }

  @Test
  void machineWithoutNetworkRefusesOtherHostsWithTheReason() {
    Capabilities machine = MACHINE.with(Capability.NETWORK, NO);
    AssertionError failure =
        catchThrowableOfType(AssertionError.class, () -> apart(machine, "192.0.2.1").close());
    assertThat(failure)
        .hasMessageContaining("several hosts")
        .hasMessageContaining("network: the test took it away");
    assertThat(failure.getSuppressed()).as("the other rank fails too").hasSize(1);
  }

  /** Several containers of one machine need only this interface. */
  @Test
  void loopbackNeedsNoNetwork() {
    try (RankGang gang = apart(MACHINE.with(Capability.NETWORK, NO), "127.0.0.1")) {
      gang.run(communicator -> communicator.barrier());
    }
  }

  private CommunicatorFactory prepared(Preloader preparation) {
    return new HostCommunicators(HostOptions.defaults().withFolder(folder), preparation);
  }

  @Test
  void everyRankHasLoadedBeforeAnyHasItsCommunicator() {
    AtomicInteger loaded = new AtomicInteger();
    CommunicatorFactory factory =
        (bootstrap, options) -> {
          Preloader preparation = Preloader.ofHost().load("a kernel", loaded::incrementAndGet);
          var communicator = prepared(preparation).create(bootstrap, options);
          assertThat(loaded.get()).isEqualTo(3);
          return communicator;
        };
    RankGang.open(factory, 3, Duration.ofSeconds(60)).close();
    assertThat(loaded).hasValue(3);
  }

  @Test
  void failureToLoadFailsTheCreation() {
    Preloader preparation =
        Preloader.ofHost()
            .load(
                "a kernel",
                () -> {
                  throw new UnsatisfiedLinkError("no such library");
                });
    CollectiveException failure =
        catchThrowableOfType(
            CollectiveException.class,
            () ->
                prepared(preparation)
                    .create(ThreadBootstrap.open(1).get(0), CommunicatorOptions.DEFAULT));
    assertThat(failure).hasMessageContaining("rank 0 cannot load a kernel").isNotNull();
    assertThat(failure.ranks()).isEqualTo(List.of(0));
  }
}
