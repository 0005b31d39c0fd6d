package io.weft.device.probe;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.probe.MemoryCgroup.Limit;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MemoryCgroupTest {
  private static final long MIB = 1 << 20;
  private static final String FIRST =
      "35 31 0:32 %s /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  private static final String SECOND =
      "30 23 0:26 %s /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

  @TempDir Path root;

  private void write(String file, Object text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text + "\n");
  }

  private void process(String groups, String mounts) throws IOException {
    write("proc/self/cgroup", groups);
    write("proc/self/mountinfo", "23 1 0:21 / /proc rw - proc proc rw\n" + mounts);
  }

  private Limit tightest() {
    return MemoryCgroup.of(root).tightest().orElseThrow();
  }

  @Test
  void secondVersion() throws IOException {
    process("0::/pod/executor", SECOND.formatted("/"));
    write("sys/fs/cgroup/pod/executor/memory.max", 1000 * MIB);
    write("sys/fs/cgroup/pod/executor/memory.current", 700 * MIB);
    write(
        "sys/fs/cgroup/pod/executor/memory.stat",
        "anon 1\nactive_file " + 100 * MIB + "\ninactive_file " + 200 * MIB);
    assertThat(tightest().bytes()).isEqualTo(1000 * MIB);
    assertThat(tightest().usedBytes()).isEqualTo(400 * MIB);
    assertThat(tightest()).asString().contains("400.0 MiB of 1000.0 MiB", "executor/memory.max");
    assertThat(MemoryCgroup.of(root).unreadable()).isEmpty();
  }

  @Test
  void theHighMarkIsALimitToo() throws IOException {
    process("0::/a", SECOND.formatted("/"));
    write("sys/fs/cgroup/a/memory.max", 1000 * MIB);
    write("sys/fs/cgroup/a/memory.high", 800 * MIB);
    assertThat(tightest().roomBytes()).isEqualTo(800 * MIB);
  }

  @Test
  void firstVersion() throws IOException {
    process("9:name=systemd:/x\n4:cpu,memory:/docker/abc\n", FIRST.formatted("/"));
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", Long.MAX_VALUE / 4096 * 4096);
    write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", 500 * MIB);
    write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", 300 * MIB);
    write(
        "sys/fs/cgroup/memory/docker/abc/memory.stat",
        "inactive_file 1\ntotal_inactive_file " + 50 * MIB);
    assertThat(tightest().bytes()).isEqualTo(500 * MIB);
    assertThat(tightest().usedBytes()).isEqualTo(250 * MIB);
  }

  /** The groups above a container are not visible in it, but the kernel tells their limit. */
  @Test
  void aLimitAboveTheMountPoint() throws IOException {
    process("4:memory:/docker/abc", FIRST.formatted("/docker/abc"));
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", 500 * MIB);
    write("sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit " + 300 * MIB);
    assertThat(tightest().bytes()).isEqualTo(300 * MIB);
  }

  /** The limit with the least room counts, not the smallest limit. */
  @Test
  void nestedGroups() throws IOException {
    process("0::/node/pod/executor", SECOND.formatted("/"));
    write("sys/fs/cgroup/node/memory.max", 4000 * MIB);
    write("sys/fs/cgroup/node/memory.current", 3900 * MIB);
    write("sys/fs/cgroup/node/pod/memory.max", "max");
    write("sys/fs/cgroup/node/pod/executor/memory.max", 1000 * MIB);
    write("sys/fs/cgroup/node/pod/executor/memory.current", 500 * MIB);
    assertThat(tightest().roomBytes()).isEqualTo(100 * MIB);
    write("sys/fs/cgroup/node/memory.current", 100 * MIB);
    assertThat(tightest().roomBytes()).isEqualTo(500 * MIB);
  }

  @ParameterizedTest
  @ValueSource(strings = {"/", "/../../other", "/not/visible"})
  void ownNamespace(String group) throws IOException {
    process("0::" + group, SECOND.formatted("/"));
    write("sys/fs/cgroup/memory.max", 700 * MIB);
    assertThat(tightest().bytes()).isEqualTo(700 * MIB);
  }

  @Test
  void bothVersionsAtOnce() throws IOException {
    process(
        "4:memory:/a\n0::/\n",
        FIRST.formatted("/") + SECOND.formatted("/").replace("/cgroup rw", "/cgroup/unified rw"));
    write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", 600 * MIB);
    write("sys/fs/cgroup/unified/cgroup.procs", 1);
    assertThat(tightest().bytes()).isEqualTo(600 * MIB);
    assertThat(MemoryCgroup.of(root).unreadable()).isEmpty();
  }

  @Test
  void aMountPointWithASpace() throws IOException {
    process("0::/a", "30 23 0:26 / /sys/c\\040g rw - cgroup2 cgroup2 rw\n");
    write("sys/c g/a/memory.max", 700 * MIB);
    assertThat(tightest().bytes()).isEqualTo(700 * MIB);
  }

  @ParameterizedTest
  @ValueSource(strings = {"max", "9223372036854771712", "18446744073709551615"})
  void noLimit(String text) throws IOException {
    process("0::/a", SECOND.formatted("/"));
    write("sys/fs/cgroup/a/memory.max", text);
    assertThat(MemoryCgroup.of(root).tightest()).isEmpty();
    assertThat(MemoryCgroup.of(root).unreadable()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "-1", "lots", "1e9", "12 34"})
  void aLimitThatCannotBeReadIsSaid(String text) throws IOException {
    process("0::/a", SECOND.formatted("/"));
    write("sys/fs/cgroup/a/memory.max", text);
    assertThat(MemoryCgroup.of(root).tightest()).isEmpty();
    assertThat(MemoryCgroup.of(root).unreadable())
        .singleElement()
        .asString()
        .contains("a/memory.max", "'" + text + "'");
  }

  @Test
  void aGroupWithoutAMountIsSaid() throws IOException {
    process("4:memory:/a", "");
    assertThat(MemoryCgroup.of(root).tightest()).isEmpty();
    assertThat(MemoryCgroup.of(root).unreadable()).singleElement().asString().contains("/a");
  }

  @Test
  void listsThatCannotBeReadAreSaid() throws IOException {
    write("proc/self/cgroup", "0::/a");
    assertThat(MemoryCgroup.of(root).tightest()).isEmpty();
    assertThat(MemoryCgroup.of(root).unreadable()).singleElement().asString().contains("mountinfo");
  }

  @Test
  void aSystemWithoutControlGroups() {
    assertThat(MemoryCgroup.of(root).tightest()).isEmpty();
    assertThat(MemoryCgroup.of(root).unreadable()).isEmpty();
    assertThat(MemoryCgroup.of(root).residentBytes()).isZero();
  }

  @Test
  void garbageInTheListsIsNoError() throws IOException {
    process("\n:\n0:\nx:y:z:w\n0::/a\n", "\n - \n1 2 3 - cgroup2\n" + SECOND.formatted("/"));
    write("sys/fs/cgroup/a/memory.max", 700 * MIB);
    write("sys/fs/cgroup/a/memory.current", "?");
    write("sys/fs/cgroup/a/memory.stat", "active_file many\n\n");
    assertThat(tightest().roomBytes()).isEqualTo(700 * MIB);
  }

  @Test
  void stalledGroups() throws IOException {
    process("0::/a", SECOND.formatted("/"));
    write("sys/fs/cgroup/a/memory.max", 700 * MIB);
    assertThat(MemoryCgroup.of(root).isStalled()).as("without the file").isFalse();
    write("sys/fs/cgroup/a/memory.pressure", pressure("0.00"));
    assertThat(MemoryCgroup.of(root).isStalled()).isFalse();
    write("sys/fs/cgroup/a/memory.pressure", pressure("25.30"));
    assertThat(MemoryCgroup.of(root).isStalled()).isTrue();
    write("sys/fs/cgroup/a/memory.max", "max");
    assertThat(MemoryCgroup.of(root).isStalled()).as("without a limit").isFalse();
  }

  private static String pressure(String full) {
    return "some avg10=50.00 avg60=1.00 avg300=0.00 total=1\nfull avg10="
        + full
        + " avg60=0.00 avg300=0.00 total=0";
  }

  @Test
  void memoryOfThisProcess() {
    MemoryCgroup own = MemoryCgroup.ofThisProcess();
    assertThat(own.privateBytes()).isBetween(MIB, own.residentBytes());
    Optional<Limit> limit = own.tightest();
    assertThat(limit.map(Limit::usedBytes).orElse(1L)).as(limit.toString()).isPositive();
  }
}
