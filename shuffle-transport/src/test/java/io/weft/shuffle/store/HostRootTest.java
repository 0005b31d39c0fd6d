package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.probe.Capabilities;
import io.weft.device.probe.CapabilityProbe;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HostRootTest {
  @TempDir Path temporary;
  private Path wanted;
  private Path local;

  @BeforeEach
  void makeFolders() throws IOException {
    wanted = Files.createDirectory(temporary.resolve("wanted"));
    local = Files.createDirectory(temporary.resolve("local"));
  }

  @Test
  void theRequestedFolderIsTakenWhereItCanBeUsed() throws IOException {
    HostRoot root = HostRoot.choose(wanted, List.of(local), 1);
    assertThat(root.path()).isEqualTo(wanted);
    assertThat(root.fallbackReason()).isEmpty();
    assertThat(Trees.contents(wanted)).as("files left by choosing").isEmpty();
  }

  @Test
  void withoutARequestItIsSharedMemory() throws IOException {
    Assumptions.assumeTrue(
        Files.isWritable(Path.of("/dev/shm")), "this machine has no /dev/shm to write to");
    HostRoot root = HostRoot.choose(null, List.of(local), 1);
    assertThat(root.path()).isEqualTo(Path.of("/dev/shm"));
    assertThat(root.sharedMemory()).isTrue();
    assertThat(root.fallbackReason()).isEmpty();
  }

  @Test
  void whereTheMachineHasNoSharedMemoryNoneIsTried() throws IOException {
    Capabilities machine =
        CapabilityProbe.run(ProbeOptions.defaults().withSharedFolder(temporary.resolve("missing")));
    HostRoot root = HostRoot.choose(machine, null, List.of(local), 1);
    assertThat(root.path()).isEqualTo(local);
    assertThat(root.fallbackReason().orElseThrow())
        .endsWith("missing does not exist")
        .isSubstringOf(machine.withinHost().reason());
    assertThat(HostRoot.choose(machine, wanted, List.of(local), 1).path())
        .as("an explicit request of the user")
        .isEqualTo(wanted);
  }

  @Test
  void aFolderThatIsTooSmallIsPassedOverWithTheReason() throws IOException {
    HostRoot root = HostRoot.choose(wanted, List.of(local), Long.MAX_VALUE);
    assertThat(root.path()).isEqualTo(local);
    assertThat(root.fallbackReason())
        .hasValueSatisfying(
            reason ->
                assertThat(reason)
                    .startsWith(wanted.toString())
                    .endsWith(" left, less than 8.0 EiB"));
  }

  @Test
  void aMissingFolderIsPassedOver() throws IOException {
    Path missing = temporary.resolve("missing");
    HostRoot root = HostRoot.choose(missing, List.of(missing, local), 1);
    assertThat(root.path()).isEqualTo(local);
    assertThat(root.fallbackReason()).hasValue(missing + " does not exist");
  }

  @Test
  void aFileIsNoFolder() throws IOException {
    Path file = Files.createFile(temporary.resolve("file"));
    HostRoot root = HostRoot.choose(file, List.of(local), 1);
    assertThat(root.path()).isEqualTo(local);
    assertThat(root.fallbackReason()).hasValue(file + " is not a folder");
  }

  @Test
  void withNoFolderLeftTheErrorNamesThemAll() {
    Path one = temporary.resolve("one");
    Path two = temporary.resolve("two");
    assertThatThrownBy(() -> HostRoot.choose(one, List.of(two), 1))
        .isInstanceOf(IOException.class)
        .hasMessageContaining(one + " does not exist")
        .hasMessageContaining(two + " does not exist");
  }

  @Test
  void aUserFolderThatOthersMayEnterIsNotUsed() throws IOException {
    Path open = wanted.resolve(HostRoot.userFolderName("ada"));
    Files.createDirectory(open);
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxr-x---"));
    HostRoot root = HostRoot.choose(wanted, List.of(local), 1, "ada");
    assertThat(root.path()).isEqualTo(local);
    assertThat(root.fallbackReason())
        .hasValueSatisfying(reason -> assertThat(reason).contains("is open to other users"));
  }

  @Test
  void aLinkInPlaceOfTheUserFolderIsNotUsed() throws IOException {
    Files.createSymbolicLink(wanted.resolve(HostRoot.userFolderName("ada")), local);
    HostRoot root = HostRoot.choose(wanted, List.of(local), 1, "ada");
    assertThat(root.path()).isEqualTo(local);
    assertThat(root.fallbackReason())
        .hasValueSatisfying(reason -> assertThat(reason).contains("is not a folder"));
  }

  @Test
  void namesOfUsersAndApplicationsCannotLeaveTheFolder() {
    assertThat(FolderNames.sanitized("../../etc")).isEqualTo("_._.._etc");
    assertThat(FolderNames.sanitized("..")).isEqualTo("_.");
    assertThat(FolderNames.sanitized("DOMAIN\\a b")).isEqualTo("DOMAIN_a_b");
    assertThat(HostRoot.userFolderName("ada")).isEqualTo("weft-ada");
  }

  @Test
  void theUserHasANameThatIsNotEmpty() {
    assertThat(HostRoot.userName()).isNotBlank().isNotEqualTo("?");
    assertThat(new HostRoot(wanted, false, Optional.empty()).userFolder().getParent())
        .isEqualTo(wanted);
  }
}
