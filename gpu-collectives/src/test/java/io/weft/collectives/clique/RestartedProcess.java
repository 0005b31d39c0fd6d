package io.weft.collectives.clique;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.FileBootstrap;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Member 1 in its own process, which acquires twice and then exits without closing. */
final class RestartedProcess {
  private RestartedProcess() {}

  /** Arguments: folder, incarnation, unique ids of the two bootstraps. */
  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    CliqueKey key = key(arguments[1]);
    CliqueCommunicators communicators = communicators(folder);
    for (String id : List.of(arguments[2], arguments[3])) {
      acquire(communicators, key, 1, folder, UniqueId.decode(id)).communicator().barrier();
    }
    Runtime.getRuntime().halt(0);
  }

  static CliqueCommunicators communicators(Path folder) {
    return new CliqueCommunicators(
        new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("host"))),
        CommunicatorOptions.DEFAULT.withTimeout(CliqueProcesses.TIMEOUT));
  }

  /** The clique of a lasting process and one incarnation of another. */
  static CliqueKey key(String incarnation) {
    return new CliqueKey(
        List.of(CliqueProcesses.member(0, "lasting"), CliqueProcesses.member(1, incarnation)),
        "processes");
  }

  static CliqueLease acquire(
      CliqueCommunicators communicators, CliqueKey key, int rank, Path folder, UniqueId id)
      throws IOException {
    try (Bootstrap end = FileBootstrap.open(folder, id, rank, 2)) {
      return communicators.acquire(key, key.members().get(rank), end);
    }
  }
}
