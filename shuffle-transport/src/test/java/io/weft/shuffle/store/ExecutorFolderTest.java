package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.store.PrivateFolders.FolderNames;
import io.weft.support.Deletion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ExecutorFolderTest {
  private static final String APPLICATION = "app-1-0123abcd";

  @TempDir Path path;

  private ExecutorFolder create(String application, String executor) throws IOException {
    return ExecutorFolder.create(ChildMain.root(path.toString()), application, executor, false);
  }

  @Test
  void aFolderHasALockATokenAndPrivateModes() throws IOException {
    try (ExecutorFolder folder = create(APPLICATION, "1")) {
      assertThat(folder.path())
          .isEqualTo(
              path.resolve(HostRoot.userFolderName(HostRoot.userName()))
                  .resolve(APPLICATION)
                  .resolve("1-" + folder.incarnation()));
      assertThat(folder.incarnation()).matches("[0-9a-f]{8}");
      assertThat(folder.token()).matches("[0-9a-f]{32}");
      assertThat(folder.path().resolve("token")).hasContent(folder.token());
      assertThat(Trees.contents(folder.path())).hasSize(2);
      for (Path each : Trees.contents(path)) {
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(each)))
            .isEqualTo(Files.isDirectory(each) ? "rwx------" : "rw-------");
      }
    }
  }

  @Test
  void theTimeForWhichAFolderIsKeptIsInIt() throws IOException {
    HostRoot root = ChildMain.root(path.toString());
    try (ExecutorFolder folder = ExecutorFolder.create(root, APPLICATION, "1", true)) {
      assertThat(folder.path().resolve("adoptable")).isEmptyFile();
      folder.keepFor(Duration.ofMinutes(1));
      assertThat(folder.path().resolve("adoptable")).hasContent("60000");
    }
  }

  @Test
  void closeLeavesNothing() throws IOException {
    ExecutorFolder folder = create(APPLICATION, "1");
    Files.createFile(folder.path().resolve("output-1-2"));
    Path inner = Files.createDirectories(folder.path().resolve("collectives/communicator-1"));
    Files.createFile(inner.resolve("alive"));
    folder.close();
    folder.close();
    assertThat(path).isEmptyDirectory();
  }

  @Test
  void anExecutorThatEndsLeavesTheOthersAlone() throws IOException {
    try (ExecutorFolder one = create(APPLICATION, "1");
        ExecutorFolder other = create("app-2-0123abcd", "1")) {
      create(APPLICATION, "2").close();
      create("app-2-0123abcd", "2").close();
      assertThat(one.path().resolve("token")).exists();
      assertThat(other.path().resolve("token")).exists();
    }
  }

  /**
   * Opening the own lock file would release the lock, and another process would sweep the folder.
   */
  @Test
  void theLockSurvivesSweepsByItsOwnProcess() throws Exception {
    try (ExecutorFolder folder = create(APPLICATION, "1")) {
      for (int i = 0; i < 3; i++) {
        FolderSweep.user(folder.path().getParent().getParent(), Optional.empty());
        assertThat(LockedFile.seize(folder.path().resolve(FolderNames.ALIVE))).isEmpty();
      }
      sweepByAnotherProcess();
      assertThat(folder.path().resolve("alive")).exists();
    }
    assertThat(path).isEmptyDirectory();
  }

  @Test
  void theLockSurvivesReplacedSystemProperties() throws Exception {
    try (ExecutorFolder folder = create(APPLICATION, "1")) {
      Properties before = System.getProperties();
      Properties others = new Properties();
      before.stringPropertyNames().stream()
          .filter(name -> !name.startsWith("io.weft."))
          .forEach(name -> others.setProperty(name, before.getProperty(name)));
      System.setProperties(others);
      try {
        FolderSweep.application(folder.path().getParent());
      } finally {
        System.setProperties(before);
      }
      sweepByAnotherProcess();
      assertThat(folder.path().resolve("alive")).exists();
    }
  }

  private void sweepByAnotherProcess() throws Exception {
    try (ChildJvm child = ChildJvm.start("closing", path.toString(), APPLICATION, "2")) {
      child.line();
      assertThat(child.finish()).isZero();
    }
  }

  @Test
  void aLivingProcessIsNotSwept() throws Exception {
    try (ChildJvm child = ChildJvm.start("closing", path.toString(), APPLICATION, "1")) {
      Path living = Path.of(child.line());
      create(APPLICATION, "2").close();
      create("app-2-0123abcd", "1").close();
      assertThat(living.resolve("alive")).exists();
      assertThat(child.finish()).isZero();
      assertThat(path).isEmptyDirectory();
    }
  }

  @Test
  void processesThatCheckAtOnceAreNotTakenForTheOwner() throws Exception {
    try (ExecutorFolder survivor = create(APPLICATION, "2");
        ChildJvm child = ChildJvm.start("closing", path.toString(), APPLICATION, "1")) {
      Path killed = Path.of(child.line());
      child.kill();
      try (ChildJvm checking = ChildJvm.start("checking", killed.toString())) {
        checking.line();
        FolderSweep.application(survivor.path().getParent());
        assertThat(killed).doesNotExist();
        assertThat(checking.finish()).isZero();
      }
    }
  }

  @Test
  void aKilledExecutorIsSweptByASurvivorWithItsDiskSegments(@TempDir Path disk) throws Exception {
    AtomicLong clock = new AtomicLong();
    Path user = ChildMain.root(path.toString()).userFolder();
    try (ExecutorFolder survivor =
            ExecutorFolder.create(user, APPLICATION, "2", false, clock::get);
        ChildJvm child =
            ChildJvm.start("executor", path.toString(), APPLICATION, "1", disk.toString())) {
      Path killed = Path.of(child.line());
      child.kill();
      assertThat(killed.resolve("segment-0")).isRegularFile();
      assertThat(killed.resolve("segment-1")).isSymbolicLink();
      assertThat(Trees.contents(disk)).hasSize(2);

      survivor.sweep();
      assertThat(killed).as("within the sweep period").exists();
      clock.set(TimeUnit.SECONDS.toNanos(11));
      survivor.sweep();

      assertThat(killed).doesNotExist();
      assertThat(disk).isEmptyDirectory();
      assertThat(survivor.path()).exists();
    }
    assertThat(path).isEmptyDirectory();
  }

  @Test
  void aDeadApplicationIsSweptByTheNextOneOfTheUser(@TempDir Path disk) throws Exception {
    try (ChildJvm child =
        ChildJvm.start("executor", path.toString(), APPLICATION, "1", disk.toString())) {
      Path killed = Path.of(child.line());
      child.kill();
      try (ExecutorFolder next = create("app-2-0123abcd", "1")) {
        assertThat(killed.getParent()).doesNotExist();
        assertThat(next.path()).exists();
      }
    }
    assertThat(path).isEmptyDirectory();
    assertThat(disk).isEmptyDirectory();
  }

  @Test
  void aProcessThatEndsWithoutClosingLeavesNothing(@TempDir Path disk) throws Exception {
    try (ChildJvm child =
        ChildJvm.start("executor", path.toString(), APPLICATION, "1", disk.toString())) {
      child.line();
      assertThat(child.finish()).isZero();
    }
    assertThat(path).isEmptyDirectory();
    assertThat(disk).isEmptyDirectory();
  }

  @Test
  void aTerminatedProcessLeavesNothing(@TempDir Path disk) throws Exception {
    try (ChildJvm child =
        ChildJvm.start("executor", path.toString(), APPLICATION, "1", disk.toString())) {
      child.line();
      child.terminate();
    }
    assertThat(path).isEmptyDirectory();
    assertThat(disk).isEmptyDirectory();
  }

  @Test
  void onlyTargetsOfOurOwnNamesAreRemoved(@TempDir Path disk) throws Exception {
    Path foreign = Files.createFile(disk.resolve("weft-looks-like-ours"));
    Path folder = Files.createDirectories(disk.resolve("weft-x"));
    Path inside = Files.createFile(folder.resolve("theirs"));
    ExecutorFolder own = create(APPLICATION, "1");
    Files.createSymbolicLink(own.path().resolve("segment-0"), foreign);
    Files.createSymbolicLink(own.path().resolve("segment-1"), inside);
    Files.createSymbolicLink(own.path().resolve("segment-2"), Path.of("../../.."));
    own.close();
    assertThat(foreign).exists();
    assertThat(inside).exists();
    assertThat(path).isEmptyDirectory();
  }

  @Test
  void anUnfinishedFolderIsLeftAloneUnlessItIsOld() throws IOException {
    Path user = ChildMain.root(path.toString()).userFolder();
    try (ExecutorFolder own = create(APPLICATION, "1")) {
      Path starting = Files.createDirectory(own.path().resolveSibling(".starting-2-00000000"));
      FolderSweep.user(user, Optional.empty());
      assertThat(starting).exists();
      Files.setLastModifiedTime(
          starting,
          FileTime.fromMillis(System.currentTimeMillis() - TimeUnit.MINUTES.toMillis(11)));
      FolderSweep.user(user, Optional.empty());
      assertThat(starting).doesNotExist();
    }
  }

  @Test
  void aHalfRemovedFolderIsRemoved() throws IOException {
    try (ExecutorFolder own = create(APPLICATION, "1")) {
      Path half = Files.createDirectory(own.path().resolveSibling("2-00000000"));
      Files.createFile(half.resolve("segment-0"));
      FolderSweep.application(half.getParent());
      assertThat(half).doesNotExist();
    }
  }

  @Test
  void aFolderOfAnotherUserInOurPlaceIsAnError() throws IOException {
    Path user = ChildMain.root(path.toString()).userFolder();
    Files.createDirectory(user);
    Files.setPosixFilePermissions(user, PosixFilePermissions.fromString("rwxrwxrwx"));
    assertThatThrownBy(() -> create(APPLICATION, "1"))
        .isInstanceOf(IOException.class)
        .hasMessageContaining(user + " is open to other users; set its mode to 0700");
  }

  @Test
  void onlyTheRightTokenOnTheRightHostIsReachable() throws IOException {
    try (ExecutorFolder folder = create(APPLICATION, "1")) {
      String bootId = folder.bootId();
      assertThat(ExecutorFolder.isReachable(bootId, folder.path(), folder.token())).isTrue();
      assertThat(ExecutorFolder.isReachable("else", folder.path(), folder.token())).isFalse();
      assertThat(ExecutorFolder.isReachable(bootId, folder.path(), "0".repeat(32))).isFalse();
      assertThat(ExecutorFolder.isReachable(bootId, path.resolve("no"), folder.token())).isFalse();
      Thread.currentThread().interrupt();
      assertThat(ExecutorFolder.isReachable(bootId, folder.path(), folder.token())).isTrue();
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  /** Several processes create and remove folders while others remove the empty parents. */
  @Test
  void manyExecutorsMayStartAndEndAtOnce() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(3);
    try (ChildJvm one = ChildJvm.start("churn", path.toString(), APPLICATION, "8", "80");
        ChildJvm two = ChildJvm.start("churn", path.toString(), APPLICATION, "9", "80")) {
      List<Future<?>> all = new ArrayList<>();
      for (int thread = 0; thread < 3; thread++) {
        String executor = Integer.toString(thread);
        all.add(threads.submit(() -> churn(executor)));
      }
      for (Future<?> each : all) {
        each.get(1, TimeUnit.MINUTES);
      }
      assertThat(one.line()).isEqualTo("done");
      assertThat(two.line()).isEqualTo("done");
      assertThat(one.finish()).isZero();
      assertThat(two.finish()).isZero();
    } finally {
      threads.shutdownNow();
      assertThat(threads.awaitTermination(1, TimeUnit.MINUTES)).isTrue();
    }
    assertThat(path).isEmptyDirectory();
  }

  private Void churn(String executor) throws IOException {
    for (int i = 0; i < 40; i++) {
      try (ExecutorFolder folder = create(APPLICATION, executor)) {
        assertThat(folder.path().resolve("token")).hasContent(folder.token());
      }
    }
    return null;
  }

  @Test
  void aDeletedFolderIsCreatedAgainWithItsLock() throws Exception {
    List<Boolean> folderAtLoss = new ArrayList<>();
    try (ExecutorFolder folder = create(APPLICATION, "1")) {
      folder.onLoss(() -> folderAtLoss.add(Files.exists(folder.path())));
      folder.restore();
      assertThat(folderAtLoss).as("nothing is lost").isEmpty();
      for (int times = 1; times <= 3; times++) {
        Deletion.delete(folder.path().getParent().getParent());
        folder.restore();
        assertThat(folderAtLoss).as("before the folder is back").hasSize(times).containsOnly(false);
        assertThat(folder.path().resolve("token")).hasContent(folder.token());
        assertThat(Trees.contents(folder.path())).hasSize(2);
        sweepByAnotherProcess();
        assertThat(folder.path().resolve("alive")).exists();
      }
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder.path())))
          .isEqualTo("rwx------");
    }
    assertThat(path).isEmptyDirectory();
  }

  /** An interrupted thread cannot restore it, so nothing ensures that memory stays unused. */
  @Test
  void memoryCountsAsLeasedAtEachDeletionUntilItIsHandled() throws IOException {
    try (ExecutorFolder folder = create(APPLICATION, "1")) {
      for (int times = 1; times <= 2; times++) {
        Deletion.delete(folder.path().getParent().getParent());
        Thread.currentThread().interrupt();
        boolean leased = folder.isLeased(7);
        assertThat(Thread.interrupted()).isTrue();
        assertThat(leased).as("deletion %d", times).isTrue();
        folder.restore();
        assertThat(folder.isLeased(7)).isFalse();
      }
    }
  }

  @Test
  void aFolderWithoutItsLockIsReplacedAndAClosedOneIsNot() throws IOException {
    ExecutorFolder folder = create(APPLICATION, "1");
    Files.createFile(folder.path().resolve("lease-1-2-0"));
    Files.delete(folder.path().resolve("alive"));
    assertThat(folder.isLeased(7)).isFalse();
    assertThat(Trees.contents(folder.path())).as("alive and token").hasSize(2);
    folder.close();
    folder.restore();
    assertThat(path).isEmptyDirectory();
  }

  /** What it had is unsafe: another user may have put a folder there. */
  @Test
  void aFolderThatCannotBeCreatedAgainIsTriedAgain() throws IOException {
    try (ExecutorFolder folder = create(APPLICATION, "1")) {
      Path user = folder.path().getParent().getParent();
      Deletion.delete(user);
      Files.createDirectory(user);
      Files.setPosixFilePermissions(user, PosixFilePermissions.fromString("rwxrwxrwx"));
      folder.restore();
      assertThat(folder.path()).doesNotExist();
      Files.setPosixFilePermissions(user, PosixFilePermissions.fromString("rwx------"));
      folder.restore();
      assertThat(folder.path().resolve("alive")).exists();
    }
  }

  @Test
  void aSweepReportsWhatItRemoved(@TempDir Path disk) throws Exception {
    try (ExecutorFolder living = create(APPLICATION, "2");
        ChildJvm child =
            ChildJvm.start("executor", path.toString(), APPLICATION, "1", disk.toString())) {
      Path killed = Path.of(child.line());
      assertThat(Leftover.sweep(path)).isEmpty();
      child.kill();
      Leftover expected = new Leftover(killed, 32 + 2 * 4096);
      assertThat(Leftover.sweep(path)).containsExactly(expected);
      assertThat(expected).hasToString(killed + " (8.0 KiB)");
      assertThat(living.path()).exists();
      assertThat(Leftover.sweep(path)).isEmpty();
    }
    assertThat(Leftover.sweep(path)).isEmpty();
    assertThat(path).isEmptyDirectory();
  }

  @Test
  void closedFoldersAreForgotten() throws IOException {
    Set<String> before = System.getProperties().stringPropertyNames();
    try (ExecutorFolder folder = create(APPLICATION, "1")) {
      assertThat(folder.path()).exists();
    }
    assertThat(System.getProperties().stringPropertyNames()).isEqualTo(before);
  }
}
