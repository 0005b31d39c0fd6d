package io.weft.collectives.symmetric;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import java.nio.file.Path;
import java.time.Duration;

/** Ranks for tests of symmetric memory. */
final class Gangs {
  private Gangs() {}

  static Deadline soon() {
    return Deadline.after(Duration.ofSeconds(60));
  }

  static RankGang of(CommunicatorFactory factory, int nranks) {
    return RankGang.open(factory, nranks, Duration.ofSeconds(60));
  }

  /** Cheap ranks, for tests that do not depend on the implementation of collectives. */
  static RankGang local(int nranks) {
    return of(LocalCommunicator::create, nranks);
  }

  static RankGang host(Path folder, int nranks) {
    return of(new HostCommunicators(HostOptions.defaults().withFolder(folder)), nranks);
  }

  static RankGang named(String implementation, Path folder, int nranks) {
    return implementation.equals("host") ? host(folder, nranks) : local(nranks);
  }
}
