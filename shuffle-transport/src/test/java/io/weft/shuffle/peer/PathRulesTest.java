package io.weft.shuffle.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.PathRules.PathChoice;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.shuffle.peer.PathRules.TransferPath;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The chosen path for a pair of executors, and its reason. */
class PathRulesTest {
  private static final PathRules AUTO = new PathRules(TransportMode.AUTO, false, false);
  private static final PathRules ENCRYPTED = new PathRules(TransportMode.AUTO, true, false);

  private static PathEnd withGpu(String id, String kernel) {
    return new PathEnd(kernel, GpuEnd.of("uuid-" + id, 0, "a GPU", "2.28.3"));
  }

  private static void assertArrays(
      PathRules rules, PathEnd one, PathEnd other, TransferPath path, String reason) {
    PathChoice choice = rules.arrays(one, other);
    assertThat(choice.path()).isEqualTo(path);
    assertThat(choice.reason()).contains(reason);
    assertThat(rules.arrays(other, one)).as("seen from the other end").isEqualTo(choice);
  }

  @Test
  void twoGpusWithOneVersionUseNccl() {
    String reason = "a GPU each, and NCCL 2.28.3 at both ends";
    assertArrays(AUTO, withGpu("1", "a"), withGpu("2", "a"), TransferPath.NCCL, reason);
    assertArrays(AUTO, withGpu("1", "a"), withGpu("2", "b"), TransferPath.NCCL, reason);
  }

  @Test
  void anEndWithoutNcclIsTheReasonForTheHost() {
    PathEnd without = new PathEnd("a", GpuEnd.without("jna: it is not there"));
    String reason = "no NCCL: jna: it is not there; both run on one kernel";
    assertArrays(AUTO, withGpu("1", "a"), without, TransferPath.SHM, reason);
    assertArrays(
        AUTO, withGpu("1", "b"), without, TransferPath.TCP, "there; they run on two kernels");
  }

  @Test
  void ofTwoReasonsBothEndsSayTheSame() {
    PathEnd one = new PathEnd("a", GpuEnd.without("no driver"));
    PathEnd other = new PathEnd("a", GpuEnd.without("no jna"));
    assertArrays(AUTO, one, other, TransferPath.SHM, "no NCCL: no driver; both");
  }

  @Test
  void ranksThatNcclDoesNotTakeAreTheReason() {
    PathEnd one = new PathEnd("a", GpuEnd.of("same", 0, "a GPU", "2.28.3"));
    PathEnd sameGpu = new PathEnd("a", GpuEnd.of("same", 0, "a GPU", "2.28.3"));
    PathEnd other = new PathEnd("a", GpuEnd.of("another", 1, "a GPU", "2.27.7"));
    assertArrays(AUTO, one, sameGpu, TransferPath.IPC, "both are on GPU same, and NCCL takes one");
    assertArrays(
        AUTO, one, other, TransferPath.IPC, "one end has NCCL 2.27.7, the other 2.28.3; both");
  }

  @Test
  void ncclIsUsedOnOneGpuIfBothEndsShareItAndCannotMapIt() {
    GpuEnd gpu = GpuEnd.of("same", 0, "a GPU", "2.30.7");
    PathEnd shares = new PathEnd("a", gpu.sharing(true));
    PathEnd unknown = new PathEnd("unknown", gpu.sharing(true));
    assertArrays(AUTO, shares, shares, TransferPath.IPC, "where CUDA IPC is faster");
    assertThat(AUTO.obstacle(shares, shares)).as("collectives have only NCCL").isEmpty();
    assertArrays(AUTO, shares, unknown, TransferPath.NCCL, "one GPU, and NCCL 2.30.7 at both ends");
    assertArrays(
        AUTO,
        unknown,
        new PathEnd("a", gpu),
        TransferPath.TCP,
        "unless it is 2.30.3 or newer and both have NCCL_MULTI_RANK_GPU_ENABLE=1");
  }

  @Test
  void gpusOfOneKernelUseIpcWithoutNccl() {
    PathEnd alone = new PathEnd("a", new GpuEnd("id", 1, "H100", "", "no library"));
    String reason = "no NCCL: no library; both run on one kernel";
    assertArrays(AUTO, withGpu("1", "a"), alone, TransferPath.IPC, reason);
    assertArrays(ENCRYPTED, withGpu("1", "a"), alone, TransferPath.IPC, reason);
    assertArrays(
        AUTO, withGpu("1", "b"), alone, TransferPath.TCP, "no library; they run on two kernels");
    PathEnd none = new PathEnd("a", GpuEnd.without("no driver"));
    assertThat(AUTO.mayMap(alone, none)).as("an end without a GPU").isFalse();
    assertThat(new PathRules(TransportMode.SHM, false, false).mayMap(alone, withGpu("1", "a")))
        .as("mode shm")
        .isFalse();
  }

  @Test
  void whereSparkEncryptsNcclStaysOnOneHostUnlessItIsAllowed() {
    PathEnd one = withGpu("1", "a");
    assertArrays(ENCRYPTED, one, withGpu("2", "a"), TransferPath.NCCL, "a GPU each");
    assertArrays(
        ENCRYPTED,
        one,
        withGpu("2", "b"),
        TransferPath.NONE,
        "NCCL does not, unless unencryptedNccl is true; nor do arrays go by");
    PathRules allowed = new PathRules(TransportMode.AUTO, true, true);
    assertArrays(allowed, one, withGpu("2", "b"), TransferPath.NCCL, "a GPU each");
    // Two unknown kernels do not count as one.
    PathEnd unknown = withGpu("3", "unknown");
    assertArrays(ENCRYPTED, unknown, withGpu("4", "unknown"), TransferPath.NONE, "encrypts");
  }

  @ParameterizedTest
  @EnumSource(
      value = TransportMode.class,
      names = {"SHM", "TCP"})
  void onlyAutoUsesNccl(TransportMode mode) {
    PathRules rules = new PathRules(mode, false, false);
    assertArrays(rules, withGpu("1", "a"), withGpu("2", "a"), TransferPath.SHM, "mode is not auto");
  }

  @Test
  void blocksAreOnTheHostAndNeverUseNccl() {
    PathEnd one = withGpu("1", "a");
    assertThat(AUTO.blocks(one, withGpu("2", "a"))).hasToString("shm (both run on one kernel)");
    assertThat(AUTO.blocks(one, withGpu("2", "b"))).hasToString("tcp (they run on two kernels)");
    assertThat(new PathRules(TransportMode.TCP, false, false).blocks(one, withGpu("2", "a")))
        .hasToString("tcp (mode is tcp)");
  }

  @Test
  void anEndHasAGpuOrAReason() {
    assertThat(GpuEnd.of("id", 1, "H100", "2.28.3"))
        .hasToString("GPU 1 (H100, id) with NCCL 2.28.3");
    GpuEnd alone = new GpuEnd("id", 1, "H100", "", "no library");
    assertThat(alone).hasToString("GPU 1 (H100, id) without NCCL: no library");
    assertThat(alone.isThere()).isTrue();
    assertThat(alone.hasNccl()).isFalse();
    assertThat(GpuEnd.without("no driver")).hasToString("no GPU for arrays: no driver");
    assertThatThrownBy(() -> GpuEnd.without(" ")).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> GpuEnd.of("", 0, "", "2.28.3"))
        .isInstanceOf(IllegalArgumentException.class);
  }

  private static PeerAddress address(GpuEnd gpu) {
    return new PeerAddress("1", "00c0ffee", "host", 1, "/folder", "token", "boot", "1", gpu);
  }

  @Test
  void anAddressTravelsWithItsGpu() throws Exception {
    PeerAddress address = address(GpuEnd.of("id", 1, "H100", "2.28.3"));
    assertThat(address.pathEnd()).isEqualTo(new PathEnd("boot", address.gpu()));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(address);
    }
    try (ObjectInputStream in =
        new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      assertThat(in.readObject()).isEqualTo(address);
    }
  }

  @Test
  void anAddressWithoutAGpuHasNone() {
    assertThat(address(null).gpu().obstacle()).contains("announced no GPU");
  }
}
