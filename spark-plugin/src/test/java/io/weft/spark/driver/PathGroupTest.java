package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.groups.Tuple.tuple;

import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.TransferPath;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TransportMode;
import io.weft.spark.config.Activation;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** Pairs in the same situation are one group. */
class PathGroupTest {
  private static PeerAddress executor(int id, String kernel, boolean gpu) {
    return new PeerAddress(
        Integer.toString(id),
        "00c0ffee",
        "host",
        1,
        "/folder",
        "token",
        kernel,
        "1",
        gpu ? GpuEnd.of("uuid-" + id, 0, "a GPU", "2.28.3") : GpuEnd.without("it has no GPU"));
  }

  @Test
  void groupsCountTheirPairsAndNameOne() {
    List<PeerAddress> executors =
        List.of(executor(1, "a", true), executor(2, "a", true), executor(3, "b", false));
    List<PathGroup> groups =
        PathGroup.of(executors, new PathRules(TransportMode.AUTO, false, false));
    assertThat(groups)
        .extracting(PathGroup::what, g -> g.choice().path(), PathGroup::pairs, PathGroup::example)
        .containsExactly(
            tuple("blocks of shuffles", TransferPath.SHM, 1L, "1 and 2"),
            tuple("arrays of tasks", TransferPath.NCCL, 1L, "1 and 2"),
            tuple("blocks of shuffles", TransferPath.TCP, 2L, "1 and 3"),
            tuple("arrays of tasks", TransferPath.TCP, 2L, "1 and 3"));
    assertThat(groups.get(3).choice().reason()).contains("no NCCL: it has no GPU");
  }

  @Test
  void onlyTheFirstExecutorsAreGrouped() {
    List<PeerAddress> executors = new ArrayList<>();
    for (int id = 0; id < PathGroup.MAX_EXECUTORS + 50; id++) {
      executors.add(executor(id, "a", true));
    }
    long pairs = PathGroup.MAX_EXECUTORS * (PathGroup.MAX_EXECUTORS - 1L) / 2;
    assertThat(PathGroup.of(executors, new PathRules(TransportMode.AUTO, false, false)))
        .extracting(PathGroup::pairs)
        .containsExactly(pairs, pairs);
  }

  @Test
  void theDriverChoosesByTheApplicationsSettings() {
    SparkConf conf = new SparkConf(false).set("spark.network.crypto.enabled", "true");
    assertThat(arraysBetweenHosts(conf)).isEqualTo(TransferPath.NONE);
    conf.set("spark.weft.nccl.allowUnencrypted", "true");
    assertThat(arraysBetweenHosts(conf)).isEqualTo(TransferPath.NCCL);
  }

  private static TransferPath arraysBetweenHosts(SparkConf conf) {
    DriverState state = new DriverState(Activation.decide(conf), conf);
    assertThat(state.paths()).isEmpty();
    state.announced(executor(1, "a", true));
    assertThat(state.paths()).as("one executor alone").isEmpty();
    state.announced(executor(2, "b", true));
    return state.paths().get(1).choice().path();
  }
}
