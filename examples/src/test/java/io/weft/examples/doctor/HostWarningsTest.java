package io.weft.examples.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Warnings about made-up machines. */
class HostWarningsTest {
  private static final String LIMITS =
      """
      Limit                     Soft Limit           Hard Limit           Units
      Max processes             %s               127000               processes
      Max open files            %s                 524288               files
      """;

  @TempDir private Path root;

  @BeforeEach
  void generousMachine() throws IOException {
    write("proc/self/limits", LIMITS.formatted("unlimited", "1048576"));
    write("proc/self/cgroup", "0::/user.slice/spark.service\n");
    write("proc/sys/vm/max_map_count", "1048576\n");
    write("sys/fs/cgroup/user.slice/spark.service/pids.max", "max\n");
    write("sys/fs/cgroup/user.slice/spark.service/memory.max", "max\n");
    write("run/systemd/system/marker", "");
    write("etc/systemd/logind.conf", "[Login]\n#RemoveIPC=yes\nRemoveIPC=no\n");
  }

  private void write(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text);
  }

  private List<String> lines() {
    return new HostWarnings(root, "spark", 1001).lines();
  }

  @Test
  void aGenerousMachineAndAnUnknownOneGiveNoWarning() {
    assertThat(lines()).isEmpty();
    assertThat(new HostWarnings(root.resolve("nothing"), "spark", 1001).lines()).isEmpty();
  }

  @Test
  void removeIpcIsOnByDefaultWhereSystemdRuns() throws IOException {
    write("etc/systemd/logind.conf", "[Login]\n#RemoveIPC=no\n");
    assertThat(lines())
        .singleElement()
        .asString()
        .contains("RemoveIPC is on", "user spark", "RemoveIPC=no", "loginctl enable-linger spark");
    assertThat(new HostWarnings(root, "spark", 999).lines()).as("a system user").isEmpty();
    write("var/lib/systemd/linger/spark", "");
    assertThat(lines()).as("a user that lingers").isEmpty();
    Files.delete(root.resolve("var/lib/systemd/linger/spark"));
    Files.delete(root.resolve("run/systemd/system/marker"));
    Files.delete(root.resolve("run/systemd/system"));
    assertThat(lines()).as("no systemd").isEmpty();
  }

  @Test
  void theLastDropInDecidesAndThatOfTheAdministratorReplacesAnother() throws IOException {
    write("usr/lib/systemd/logind.conf.d/50-vendor.conf", "[Login]\nRemoveIPC=yes\n");
    assertThat(lines()).hasSize(1);
    write("run/systemd/logind.conf.d/60-run.conf", "[Login]\n RemoveIPC = false\n");
    assertThat(lines()).isEmpty();
    write("usr/lib/systemd/logind.conf.d/90-vendor.conf", "[Login]\nRemoveIPC=1\n");
    assertThat(lines()).hasSize(1);
    write("etc/systemd/logind.conf.d/90-vendor.conf", "");
    assertThat(lines()).isEmpty();
  }

  @Test
  void lowLimitsOfTheProcess() throws IOException {
    write("proc/self/limits", LIMITS.formatted("1024", "1024"));
    assertThat(lines())
        .satisfiesExactly(
            files -> assertThat(files).contains("Max open files: 1024", "nofile", "8192"),
            threads -> assertThat(threads).contains("Max processes: 1024", "nproc", "4096"));
  }

  @Test
  void fewMaps() throws IOException {
    write("proc/sys/vm/max_map_count", "1000\n");
    assertThat(lines())
        .singleElement()
        .asString()
        .contains("vm.max_map_count: 1000", "sysctl -w vm.max_map_count=65530");
  }

  @Test
  void limitsOfACgroupAndOfItsParents() throws IOException {
    write("sys/fs/cgroup/user.slice/pids.max", "500\n");
    write("sys/fs/cgroup/user.slice/memory.max", "2147483648\n");
    assertThat(lines())
        .satisfiesExactly(
            pids -> assertThat(pids).contains("pids limit of the cgroup: 500", "TasksMax"),
            memory ->
                assertThat(memory)
                    .contains("memory limit of the cgroup: ", "spark.executor.memoryOverhead"));
  }

  @Test
  void limitsOfACgroupOfVersionOne() throws IOException {
    write("proc/self/cgroup", "9:pids:/docker/1\n4:memory:/docker/1\n2:cpu,cpuacct:/docker/1\n");
    write("sys/fs/cgroup/pids/docker/1/pids.max", "100\n");
    write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "9223372036854771712\n");
    assertThat(lines()).singleElement().asString().contains("pids limit of the cgroup: 100");
  }
}
