package io.weft.examples.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.host.HostOptions;
import io.weft.device.probe.Capabilities;
import io.weft.device.probe.Capability;
import io.weft.device.probe.CapabilityProbe;
import io.weft.shuffle.store.ExecutorFolder;
import io.weft.shuffle.store.HostRoot;
import io.weft.shuffle.store.Lease;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class DoctorCommandTest {
  @TempDir private Path folder;

  private static String run(String... arguments) {
    StringWriter out = new StringWriter();
    int status =
        new CommandLine(new DoctorCommand()).setOut(new PrintWriter(out, true)).execute(arguments);
    assertThat(status).isZero();
    return out.toString();
  }

  @Test
  void everyCapabilityAndEveryChoiceIsShown() {
    String text = run("--folder", folder.toString(), "--local-folders", folder.toString());
    for (Capability capability : Capability.values()) {
      assertThat(text).containsPattern("(?m)^  " + capability + " +(yes|no) +\\S");
    }
    assertThat(text).contains("shuffle blocks: in ", folder.toString(), "ranks of one host: ");
    assertThat(folder).isEmptyDirectory();
  }

  /** The output shows the same capabilities that the choices use. */
  @Test
  void withoutOptionsItShowsTheCapabilitiesOfThisProcess() {
    Capabilities machine = CapabilityProbe.thisMachine();
    String text = run("--local-folders", folder.toString());
    machine.lines().forEach(line -> assertThat(text).contains(line));
    machine.choices().forEach(line -> assertThat(text).contains(line));
    assertThat(text)
        .contains("blocks of other executors: shm from this host, tcp from others; never nccl")
        .contains("up to 512.0 MiB of transient and 512.0 MiB of retained private memory in each")
        .contains("arrays between GPUs of executors: ", machine.betweenGpus().reason())
        .contains("communicators without Spark: in " + HostOptions.defaults().folder() + "\n");
  }

  @Test
  void aMissingFolderIsTheReasonForTheFallback() {
    Path missing = folder.resolve("missing");
    String text = run("--folder", missing.toString(), "--local-folders", folder.toString());
    assertThat(text)
        .contains("shuffle blocks: in " + folder, "because " + missing + " does not exist")
        .containsPattern("shared memory +no +" + missing + " does not exist");
  }

  @Test
  void aSweepDeletesOnlyWhatIsOfNoUse(@TempDir Path disk) throws IOException {
    HostRoot root = new HostRoot(folder, true, Optional.empty());
    try (ExecutorFolder living = ExecutorFolder.create(root, "app-1", "1", false)) {
      Path application = living.path().getParent();
      Path dead = abandoned(application.resolveSibling("app-2"), "3-0123abcd");
      Path files = Files.createDirectory(disk.resolve("weft-3-0123abcd-1"));
      Path segment = Files.write(files.resolve("weft-segment-1"), new byte[1 << 20]);
      Files.createSymbolicLink(dead.resolve("segment-1"), segment);
      Path read = abandoned(application, "4-0123abcd");
      try (Lease lease = Lease.take(read, 1, "1", living.incarnation())) {
        assertThat(lease).isNotNull();
        String text =
            run("--sweep", "--folder", folder.toString(), "--local-folders", disk.toString());
        assertThat(text)
            .contains("removed " + dead + " (2.0 MiB)")
            .contains("2.10 MB removed from [" + folder + ", " + disk + "]")
            .doesNotContain(read.toString(), living.path().toString());
        assertThat(dead).doesNotExist();
        assertThat(disk).isEmptyDirectory();
        assertThat(read.resolve("segment-0")).exists();
        assertThat(living.path().resolve("alive")).exists();
      }
      assertThat(run("--sweep", "--folder", folder.toString())).contains("removed " + read);
      assertThat(run("--sweep", "--folder", folder.toString())).startsWith("0 B removed from [");
    }
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void copiesOfDeadApplicationsAreSwept() throws IOException {
    Path copies = folder.resolve("copies");
    Path dead = application(copies, "dead", Duration.ofHours(3));
    Path living = application(copies, "living", Duration.ofMinutes(30));
    String[] sweep = {
      "--sweep", "--folder", folder.toString(), "--survive-path", copies.toString()
    };
    assertThat(run(sweep)).contains("removed ").contains(dead.toString());
    assertThat(dead).doesNotExist();
    assertThat(living).exists();
  }

  /** Makes the folder of an application's copies with a mark of this age. */
  private static Path application(Path copies, String name, Duration age) throws IOException {
    String user = System.getProperty("user.name");
    Path ofUser = Files.createDirectories(copies.resolve("weft-" + user));
    Files.setPosixFilePermissions(ofUser, PosixFilePermissions.fromString("rwx------"));
    Path application = Files.createDirectory(ofUser.resolve(name));
    Path mark = Files.createFile(application.resolve("alive"));
    Files.setLastModifiedTime(mark, FileTime.from(Instant.now().minus(age)));
    return application;
  }

  /** Makes the folder of an executor that was killed, with a segment. */
  private static Path abandoned(Path application, String name) throws IOException {
    Path executor = Files.createDirectories(application.resolve(name));
    Files.createFile(executor.resolve("alive"));
    Files.write(executor.resolve("segment-0"), new byte[1 << 20]);
    return executor;
  }

  /** A file that is not a library is rejected before a call. */
  @Test
  void theDriverIsCalledOnlyOnRequest() throws IOException {
    Path library = Files.writeString(folder.resolve("libnccl.so.2"), "not a library");
    String quiet = run("--local-folders", folder.toString(), "--nccl", library.toString());
    assertThat(quiet).contains("does not say which version").doesNotContain("and NCCL say");
    String asked = run("--local-folders", folder.toString(), "--nccl", library.toString(), "--gpu");
    assertThat(asked)
        .contains("NCCL cannot be used: " + library + " cannot be loaded")
        .contains("an executor here has no GPU for arrays: ");
  }
}
