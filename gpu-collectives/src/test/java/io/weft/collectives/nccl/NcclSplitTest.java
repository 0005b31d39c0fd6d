package io.weft.collectives.nccl;

import static io.weft.collectives.contract.CommunicatorContract.filled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RandomStep;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.testgpus.UsesGpu;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Communicators that NCCL splits off others. */
@UsesGpu
class NcclSplitTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  @TempDir Path folder;

  private RankGang gang(int nranks) {
    return RankGang.open(
        GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder))),
        nranks,
        LONG);
  }

  @AfterEach
  void nothingIsLeaked() {
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  private static Optional<DeviceCommunicator> split(Communicator whole, int color, int key) {
    return ((DeviceCommunicator) whole).split(color, key);
  }

  private static void compute(Communicator communicator) {
    Random random = new Random(communicator.nranks());
    for (int step = 0; step < 20; step++) {
      RandomStep.run(communicator, random, "step " + step);
    }
    TypedBuffer data = filled(communicator, DataType.INT32, 20_000);
    communicator.allReduce(data, ReduceOp.SUM);
    int nranks = communicator.nranks();
    Values.check("sum", data, i -> Values.reduced(DataType.INT32, ReduceOp.SUM, nranks, i));
  }

  /**
   * Even and odd ranks, in opposite order, at the same time, while the whole communicator is in
   * use.
   */
  @Test
  void partsAndTheWholeCompute() {
    try (RankGang gang = gang(5)) {
      gang.run(
          whole -> {
            try (DeviceCommunicator part =
                split(whole, whole.rank() % 2, -whole.rank()).orElseThrow()) {
              int nranks = whole.rank() % 2 == 0 ? 3 : 2;
              assertThat(part.nranks()).isEqualTo(nranks);
              assertThat(part.rank()).isEqualTo(nranks - 1 - whole.rank() / 2);
              assertThat(part.id()).isNotEqualTo(whole.id());
              compute(part);
              compute(whole);
              compute(part);
            }
          });
    }
  }

  @Test
  void ranksWithoutAColorAreLeftOut() {
    try (RankGang gang = gang(3)) {
      gang.run(
          whole -> {
            Optional<DeviceCommunicator> part =
                split(whole, whole.rank() == 1 ? DeviceCommunicator.NO_COLOR : 7, 0);
            assertThat(part.isPresent()).isEqualTo(whole.rank() != 1);
            if (part.isPresent()) {
              compute(part.get());
              part.get().close();
            }
            compute(whole);
          });
    }
  }

  @Test
  void partsAreSplitAgainAndAgain() {
    try (RankGang gang = gang(4)) {
      gang.run(
          whole -> {
            for (int round = 0; round < 3; round++) {
              try (DeviceCommunicator half = split(whole, whole.rank() / 2, 0).orElseThrow();
                  DeviceCommunicator single = split(half, half.rank(), 0).orElseThrow()) {
                assertThat(half.nranks()).isEqualTo(2);
                assertThat(single.nranks()).isOne();
                compute(half);
                compute(single);
              }
            }
          });
    }
  }

  @Test
  void partThatBreaksLeavesTheWholeAndTheOtherPartAlone() {
    try (RankGang gang = gang(4)) {
      gang.run(
          whole -> {
            try (DeviceCommunicator part = split(whole, whole.rank() / 2, 0).orElseThrow()) {
              if (whole.rank() == 3) {
                part.abort("for the test");
              }
              if (whole.rank() < 2) {
                compute(part);
              } else {
                assertThatThrownBy(part::barrier)
                    .isInstanceOf(CollectiveException.class)
                    .hasMessageContaining("for the test");
              }
              compute(whole);
            }
          });
    }
  }

  @Test
  void colorsAreChecked() {
    try (RankGang gang = gang(1)) {
      assertThatThrownBy(() -> split(gang.rank(0), -2, 0)).hasMessageContaining("color -2");
      gang.rank(0).barrier();
    }
  }
}
