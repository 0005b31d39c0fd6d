package io.weft.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.probe.MemoryCgroup;
import io.weft.memory.SettingNames;
import io.weft.shuffle.ExchangeOptions.MemoryGrant;
import io.weft.shuffle.ExchangeOptions.MemoryOptions;
import io.weft.shuffle.store.HostRoot;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Budgets in made-up control groups. The file system is this machine's. */
class MemoryBudgetTest {
  private static final long MIB = 1 << 20;
  private static final long SEGMENT = 64 * MIB;

  /** What the process may take beside shared memory; it has taken 500 MiB of that. */
  private static final long PROCESS = 1400 * MIB;

  private static final long TAKEN = 500 * MIB;
  private static final SettingNames NAMES =
      new SettingNames(Map.of("containerBytes", "the.overhead", "memoryBytes", "the.size"));

  @TempDir Path machine;
  @TempDir Path segments;

  /** Not a memory file system, unlike the temporary folder of some machines; nothing is written. */
  private Path local = Path.of("/proc");

  private MemoryGrant grant = MemoryGrant.WHOLE_HOST;
  private long memoryBytes;
  private boolean inMemory = true;

  @BeforeEach
  void process() throws IOException {
    write("proc/self/cgroup", "0::/a");
    write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
    write(
        "proc/self/status",
        "Pid:\t7\nVmRSS:\t" + 2 * TAKEN / 1024 + " kB\nRssAnon:\t" + TAKEN / 1024 + " kB");
  }

  private void write(String file, Object text) throws IOException {
    Path path = machine.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text + "\n");
  }

  private void container(long limit, long used) throws IOException {
    write("sys/fs/cgroup/a/memory.max", limit);
    write("sys/fs/cgroup/a/memory.current", used);
  }

  private MemoryBudget budget() {
    MemoryOptions options =
        new MemoryOptions(
            Optional.of(segments),
            List.of(local),
            SEGMENT,
            memoryBytes,
            1 << 30,
            0,
            Optional.empty(),
            Duration.ofMinutes(1),
            grant);
    return new MemoryBudget(
        options,
        new HostRoot(segments, inMemory, Optional.empty()),
        MemoryCgroup.of(machine),
        PROCESS,
        NAMES);
  }

  private long automatic() {
    return MemoryBudget.automaticBytes(segments, 1);
  }

  @Test
  void withoutALimitTheFileSystemDecides() throws IOException {
    write("sys/fs/cgroup/a/memory.max", "max");
    assertThat(budget().bytes()).isEqualTo(automatic()).isPositive();
    assertThat(budget().remarks()).isEmpty();
    assertThat(budget().isShort()).isFalse();
  }

  /** 2200 MiB less 1400 for this process, in whole segments: 12 of 64 MiB. */
  @Test
  void theContainerLeavesWhatTheJvmDoesNotTake() throws IOException {
    container(2200 * MIB, TAKEN);
    assertThat(budget().bytes()).isEqualTo(12 * SEGMENT);
    assertThat(budget().remarks()).isEmpty();
  }

  @Test
  void whatOthersUseIsNotLeft() throws IOException {
    container(2200 * MIB, TAKEN + 200 * MIB);
    assertThat(budget().bytes()).isEqualTo(9 * SEGMENT);
  }

  @Test
  void tooLittleIsNothingAndSaid() throws IOException {
    container(1500 * MIB, TAKEN);
    assertThat(budget().bytes()).isZero();
    assertThat(budget().remarks())
        .singleElement()
        .asString()
        .contains("the container leaves 100.0 MiB for shared memory")
        .contains("500.0 MiB of 1.5 GiB in use", "a/memory.max", "take 900.0 MiB more")
        .endsWith("Raise the.overhead");
  }

  @Test
  void theUsersSizeStaysAndIsSaidToBeTooLarge() throws IOException {
    container(1500 * MIB, TAKEN);
    memoryBytes = 2048 * MIB;
    assertThat(budget().bytes()).isEqualTo(2048 * MIB);
    assertThat(budget().remarks())
        .singleElement()
        .asString()
        .startsWith("the.size is 2.0 GiB, but the container leaves 100.0 MiB")
        .endsWith("Raise the.overhead, or set the.size to 0");
  }

  @Test
  void aSizeBeyondTheFileSystemIsSaid() throws IOException {
    write("sys/fs/cgroup/a/memory.max", "max");
    grant = new MemoryGrant(0.5, 0, 0, OptionalLong.empty());
    memoryBytes = segments.toFile().getTotalSpace() / 2;
    assertThat(budget().remarks()).isEmpty();
    memoryBytes += MIB;
    assertThat(budget().bytes()).isEqualTo(memoryBytes);
    assertThat(budget().remarks())
        .singleElement()
        .asString()
        .startsWith("the.size is ")
        .contains("of " + Files.getFileStore(segments) + " all programs together may fill ", "0.5");
    container(1500 * MIB, TAKEN);
    assertThat(budget().remarks()).as("the container's limit").hasSize(1);
  }

  /**
   * A manager that adds up resident memory counts mapped files as well. Those that were mapped at
   * the start are the JVM's own.
   */
  @Test
  void theContainerOfAClusterManager() throws IOException {
    write("sys/fs/cgroup/a/memory.max", "max");
    grant = new MemoryGrant(1, 0, 0, OptionalLong.of(PROCESS + 3 * SEGMENT));
    assertThat(budget().bytes()).isEqualTo(3 * SEGMENT);
    container(3000 * MIB, TAKEN);
    assertThat(budget().bytes()).as("the manager's is tighter").isEqualTo(3 * SEGMENT);
    container(1400 * MIB + 2 * SEGMENT, TAKEN);
    assertThat(budget().bytes()).as("the control group's is tighter").isEqualTo(2 * SEGMENT);
    MemoryBudget budget = budget();
    write("sys/fs/cgroup/a/memory.max", "max");
    assertThat(budget.objection(SEGMENT)).isEmpty();
    write(
        "proc/self/status",
        "VmRSS:\t" + (2 * TAKEN + 3 * SEGMENT) / 1024 + " kB\nRssAnon:\t" + TAKEN / 1024 + " kB");
    assertThat(budget.objection(SEGMENT)).as("with three segments mapped").isPresent();
    assertThat(budget.isShort()).isFalse();
  }

  /**
   * The control group counts the Python workers' memory, which is reserved only until they have it.
   */
  @Test
  void memoryThatPythonHasIsNotReservedAgain() throws IOException {
    grant = new MemoryGrant(1, 0, 4 * SEGMENT, OptionalLong.empty());
    container(PROCESS + 8 * SEGMENT, TAKEN);
    assertThat(budget().bytes()).as("before the first worker").isEqualTo(4 * SEGMENT);
    process(10, 1, 2 * SEGMENT);
    process(11, 7, SEGMENT);
    process(12, 11, 2 * SEGMENT);
    container(PROCESS + 8 * SEGMENT, TAKEN + 3 * SEGMENT);
    assertThat(budget().bytes()).as("with three of four segments").isEqualTo(4 * SEGMENT);
    process(12, 11, 5 * SEGMENT);
    container(PROCESS + 8 * SEGMENT, TAKEN + 6 * SEGMENT);
    assertThat(budget().bytes()).as("with more than granted").isEqualTo(2 * SEGMENT);
  }

  /** A manager's figures are those of this process only. */
  @Test
  void theContainerOfAClusterManagerHasPythonBesideTheProcess() throws IOException {
    grant = new MemoryGrant(1, 0, SEGMENT, OptionalLong.of(PROCESS + 4 * SEGMENT));
    process(11, 7, SEGMENT);
    assertThat(budget().bytes()).isEqualTo(3 * SEGMENT);
  }

  private void process(int id, int parent, long bytes) throws IOException {
    write(
        "proc/" + id + "/status",
        "Pid:\t%d\nPPid:\t%d\nRssAnon:\t%d kB".formatted(id, parent, bytes / 1024));
  }

  @Test
  void segmentsOnADiskAreNotMemory() throws IOException {
    container(1500 * MIB, TAKEN);
    inMemory = false;
    grant = new MemoryGrant(0.01, 0, 0, OptionalLong.empty());
    assertThat(budget().bytes()).isPositive();
    assertThat(budget().objection(SEGMENT)).isEmpty();
  }

  @Test
  void aFullContainerRefusesSegmentsUntilItHasRoom() throws IOException {
    memoryBytes = 2048 * MIB;
    container(2200 * MIB, TAKEN);
    assertThat(budget().objection(SEGMENT)).isEmpty();
    assertThat(budget().isShort()).isFalse();
    container(2200 * MIB, TAKEN + 790 * MIB);
    assertThat(budget().objection(SEGMENT))
        .hasValueSatisfying(why -> assertThat(why).contains("leaves 10.0 MiB for 64.0 MiB"));
    assertThat(budget().isShort()).isFalse();
    container(2200 * MIB, TAKEN + 810 * MIB);
    assertThat(budget().isShort()).isTrue();
    write("sys/fs/cgroup/a/memory.stat", "inactive_file " + 500 * MIB);
    assertThat(budget().objection(SEGMENT)).as("with files that can be dropped").isEmpty();
    assertThat(budget().isShort()).isFalse();
  }

  @Test
  void processesThatWaitForMemory() throws IOException {
    container(4000 * MIB, TAKEN);
    write("sys/fs/cgroup/a/memory.pressure", "full avg10=33.00 avg60=0.00 avg300=0.00 total=0");
    assertThat(budget().isShort()).isTrue();
    assertThat(budget().objection(SEGMENT)).isPresent();
  }

  /** All files of the file system count: the test needs one that is neither empty nor full. */
  @Test
  void theQuotaOfTheHost() {
    long total = segments.toFile().getTotalSpace();
    double used = 1 - (double) segments.toFile().getUsableSpace() / total;
    grant = new MemoryGrant(Math.max(0.01, used / 2), 0, 0, OptionalLong.empty());
    assertThat(budget().objection(total / 10))
        .hasValueSatisfying(why -> assertThat(why).contains(segments + " has", "hostFraction"));
    grant = MemoryGrant.WHOLE_HOST;
    assertThat(budget().objection(SEGMENT)).isEmpty();
  }

  @Test
  void theQuotaLimitsTheDefaultSize() {
    assertThat(MemoryBudget.automaticBytes(segments, 0.01))
        .isEqualTo(Math.min(4L << 30, segments.toFile().getTotalSpace() / 100));
  }

  @ParameterizedTest
  @ValueSource(doubles = {0, -1, 1.01, Double.NaN, Double.POSITIVE_INFINITY})
  void anAbsurdFractionIsRefused(double fraction) {
    assertThatThrownBy(() -> new MemoryGrant(fraction, 0, 0, OptionalLong.empty()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("hostFraction is " + fraction);
  }

  @Test
  void absurdSizesAreRefused() {
    assertThatThrownBy(() -> new MemoryGrant(1, -1, 0, OptionalLong.empty()))
        .hasMessageContaining("otherBytes -1");
    assertThatThrownBy(() -> new MemoryGrant(1, 0, 0, OptionalLong.of(-5)))
        .hasMessageContaining("containerBytes");
  }

  @Test
  void aLimitThatCannotBeReadIsSaid() throws IOException {
    write("sys/fs/cgroup/a/memory.max", "garbage");
    assertThat(budget().bytes()).isEqualTo(automatic());
    assertThat(budget().remarks())
        .singleElement()
        .asString()
        .endsWith(
            "memory.max cannot be read: 'garbage' is no number of bytes, so it counts as no limit."
                + " Set the.size to what the container has room for");
  }

  @Test
  void aLocalFolderInMemoryIsSaid() {
    local = Path.of("/dev/shm");
    assertThat(budget().remarks())
        .hasSize(HostRoot.isMemory(local) ? 1 : 0)
        .allMatch(
            remark -> remark.startsWith("Local folders are in memory, on /dev/shm (tmpfs), so"));
  }

  @Test
  void theJvmOfThisTestNeedsItsHeapAndMore() {
    long heap = Runtime.getRuntime().maxMemory();
    assertThat(MemoryBudget.processBytes(1000))
        .isGreaterThanOrEqualTo(heap + MemoryBudget.jvmBytes(heap) + 1000);
    assertThat(MemoryBudget.jvmBytes(1024 * MIB)).isEqualTo(384 * MIB);
    assertThat(MemoryBudget.jvmBytes(10240 * MIB)).isEqualTo(1024 * MIB);
  }
}
