package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.SharedArena;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;

/** Tests with processes of a second user. Starting them needs root. */
class TwoUsersTest {
  private static final int OTHER_USER = 65534;
  private static final List<String> AS_OTHER_USER =
      List.of("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups");

  @TempDir Path temporary;
  private Path root;

  @BeforeEach
  void makeAFolderThatAllMayWriteTo() throws IOException {
    Assumptions.assumeTrue(
        Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0)
            && Stream.of("/usr/bin/setpriv", "/bin/setpriv").map(File::new).anyMatch(File::exists),
        "only root can start a process of another user, with setpriv");
    Files.setPosixFilePermissions(temporary, PosixFilePermissions.fromString("rwxr-xr-x"));
    root = Files.createDirectory(temporary.resolve("root"));
    Files.setPosixFilePermissions(root, PosixFilePermissions.fromString("rwxrwxrwx"));
  }

  @Test
  void eachUserSweepsItsOwnDeadOnly() throws Exception {
    Path disk = Files.createDirectory(temporary.resolve("disk"));
    Files.setPosixFilePermissions(disk, PosixFilePermissions.fromString("rwxrwxrwx"));
    String classPath = readableClassPath();
    Path killed = killedExecutor(classPath, disk);
    assertThat(Files.getAttribute(killed, "unix:uid")).isEqualTo(OTHER_USER);
    String application = killed.getParent().getFileName().toString();

    ExecutorFolder.create(new HostRoot(root, true, Optional.empty()), application, "1", false)
        .close();
    assertThat(killed.resolve("segment-0")).exists();
    assertThat(Trees.contents(disk)).hasSize(2);

    try (ChildJvm next = startAsOtherUser(classPath, "closing", "app-2-00000000")) {
      next.line();
      assertThat(killed).doesNotExist();
      assertThat(next.finish()).isZero();
    }
    assertThat(root).isEmptyDirectory();
    assertThat(disk).isEmptyDirectory();
  }

  private Path killedExecutor(String classPath, Path disk) throws Exception {
    try (ChildJvm child =
        startAsOtherUser(classPath, "executor", "app-1-00000000", disk.toString())) {
      Path folder = Path.of(child.line());
      child.kill();
      return folder;
    }
  }

  private ChildJvm startAsOtherUser(
      String classPath, String what, String application, String... rest) throws IOException {
    List<String> arguments = new ArrayList<>(List.of(what, root.toString(), application, "1"));
    arguments.addAll(List.of(rest));
    return ChildJvm.start(AS_OTHER_USER, classPath, arguments.toArray(String[]::new));
  }

  @Test
  void aFolderThatAnotherUserMadeInOurNameIsNotUsed() throws IOException {
    Path squatted = Files.createDirectory(root.resolve(HostRoot.userFolderName("ada")));
    Files.setPosixFilePermissions(squatted, PosixFilePermissions.fromString("rwx------"));
    Files.setAttribute(squatted, "unix:uid", OTHER_USER, LinkOption.NOFOLLOW_LINKS);
    assertThatThrownBy(() -> HostRoot.choose(root, List.of(), 1, "ada"))
        .hasMessageContaining(squatted + " belongs to user number 65534");
    assertThatThrownBy(() -> PrivateFolders.ensure(squatted))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("belongs to user number 65534");
  }

  /**
   * Copies the classes that the child needs, because other users may not read the build's folders.
   */
  private String readableClassPath() throws IOException {
    List<String> entries = new ArrayList<>();
    for (Class<?> one :
        List.of(ChildMain.class, ExecutorFolder.class, SharedArena.class, Logger.class)) {
      Path from = Path.of(one.getProtectionDomain().getCodeSource().getLocation().getPath());
      Path to = temporary.resolve("classes-" + entries.size());
      copy(from, Files.isDirectory(from) ? to : temporary.resolve(entries.size() + ".jar"));
      entries.add(
          (Files.isDirectory(from) ? to : temporary.resolve(entries.size() + ".jar")).toString());
    }
    return String.join(File.pathSeparator, entries);
  }

  private static void copy(Path from, Path to) throws IOException {
    try (Stream<Path> all = Files.walk(from)) {
      for (Path each : all.toList()) {
        Path target = to.resolve(from.relativize(each).toString());
        Files.copy(each, from.equals(each) ? to : target);
      }
    }
  }
}
