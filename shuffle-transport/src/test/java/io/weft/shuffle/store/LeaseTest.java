package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.store.Lease.FolderLeases;
import io.weft.shuffle.store.PrivateFolders.FolderNames;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LeaseTest {
  private static final String APPLICATION = "app-1-0123abcd";

  @TempDir Path path;
  private ExecutorFolder owner;

  @BeforeEach
  void createOwner() throws IOException {
    owner = ExecutorFolder.create(ChildMain.root(path.toString()), APPLICATION, "1", false);
  }

  @AfterEach
  void closeOwner() {
    owner.close();
    assertThat(path).isEmptyDirectory();
  }

  private Lease take(int shuffle) throws IOException {
    return Lease.take(owner.path(), shuffle, "2", "abcdef01");
  }

  @Test
  void aLeaseCountsForItsShuffleUntilItIsClosed() throws IOException {
    Lease lease = take(1);
    assertThat(owner.leases().anyLiving(1)).isTrue();
    assertThat(owner.leases().anyLiving(12)).isFalse();
    assertThat(owner.leases().anyLiving(0)).isFalse();
    lease.close();
    lease.close();
    assertThat(owner.leases().anyLiving(1)).isFalse();
    assertThat(Trees.contents(owner.path())).as("alive and token").hasSize(2);
  }

  @Test
  void theLeaseIsVisibleUnderItsReadersName() throws IOException {
    try (Lease lease = take(7)) {
      assertThat(lease).isNotNull();
      assertThat(Trees.contents(owner.path()))
          .anyMatch(file -> file.getFileName().toString().startsWith("lease-7-2-abcdef01"));
    }
  }

  @Test
  void severalLeasesOfOneReaderCountEach() throws IOException {
    List<Lease> leases = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      leases.add(take(1));
    }
    while (!leases.isEmpty()) {
      assertThat(owner.leases().anyLiving(1)).isTrue();
      leases.remove(0).close();
    }
    assertThat(owner.leases().anyLiving(1)).isFalse();
  }

  /** A session may have thousands of live shuffles on each of many peers. */
  @Test
  void theDescriptorsDoNotGrowWithTheLeases() throws IOException {
    List<Lease> leases = new ArrayList<>();
    leases.add(take(0));
    long before = descriptors();
    for (int shuffle = 1; shuffle < 1000; shuffle++) {
      leases.add(take(shuffle));
    }
    assertThat(descriptors()).isLessThan(before + 50);
    assertThat(owner.leases().anyLiving(999)).isTrue();
    for (Lease lease : leases) {
      lease.close();
    }
    assertThat(owner.leases().anyLiving()).isFalse();
    assertThat(Trees.contents(owner.path())).as("alive and token").hasSize(2);
  }

  private static long descriptors() throws IOException {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.count();
    }
  }

  @Test
  void aReaderThatClosedAllItsLeasesCanTakeAnother() throws IOException {
    take(1).close();
    try (Lease lease = take(2)) {
      assertThat(lease).isNotNull();
      assertThat(owner.leases().anyLiving(2)).isTrue();
      assertThat(owner.leases().anyLiving(1)).isFalse();
    }
    assertThat(Trees.contents(owner.path())).as("alive and token").hasSize(2);
  }

  /** Such as the lock of a process that is not Java; it counts until that process dies. */
  @Test
  void aSharedLockKeepsALeasedFolder() throws Exception {
    LeasedFolder lent = LeasedFolder.create(owner.path(), "feed-1");
    try (ChildJvm reader = ChildJvm.start("shared", lent.lease().toString())) {
      assertThat(reader.line()).contains("shared");
      assertThat(owner.leases().anyLiving()).isTrue();
      assertThat(lent.lease()).exists();
      reader.kill();
      assertThat(owner.leases().anyLiving()).isFalse();
    }
    assertThat(lent.lease()).doesNotExist();
  }

  /** Another program may delete the files of an executor. */
  @Test
  void aLeaseAfterItsReadersFileWasDeletedCountsToo() throws IOException {
    try (Lease lost = take(1)) {
      for (Path file : Trees.contents(owner.path())) {
        if (file.getFileName().toString().startsWith(FolderNames.READER_PREFIX)) {
          Files.delete(file);
        }
      }
      assertThat(lost.isVisible()).isFalse();
      try (Lease lease = take(2)) {
        assertThat(lease.isVisible()).isTrue();
        assertThat(owner.leases().anyLiving(2)).isTrue();
      }
    }
    assertThat(owner.leases().anyLiving()).isFalse();
  }

  /** Repeated checks must not release the lock of a lease of this process. */
  @Test
  void checksDoNotEndALease() throws Exception {
    try (Lease lease = take(1)) {
      assertThat(lease).isNotNull();
      for (int i = 0; i < 3; i++) {
        assertThat(owner.leases().anyLiving(1)).isTrue();
      }
    }
  }

  @Test
  void aLivingReaderKeepsItsLeaseAndADeadOneDoesNot() throws Exception {
    try (ChildJvm reader = ChildJvm.start("lease", owner.path().toString(), "5")) {
      reader.line();
      for (int i = 0; i < 3; i++) {
        assertThat(owner.leases().anyLiving(5)).isTrue();
      }
      reader.kill();
      assertThat(owner.leases().anyLiving(5)).isFalse();
      assertThat(Trees.contents(owner.path())).as("alive and token").hasSize(2);
    }
  }

  @Test
  void aReaderThatEndsInOrderRemovesItsLease() throws Exception {
    try (ChildJvm reader = ChildJvm.start("lease", owner.path().toString(), "5")) {
      reader.line();
      assertThat(reader.finish()).isZero();
      assertThat(Trees.contents(owner.path())).hasSize(2);
    }
  }

  @Test
  void aLeaseOnAnEndedOwnerFails() throws IOException {
    Path gone = owner.path();
    owner.close();
    assertThatThrownBy(() -> Lease.take(gone, 1, "2", "abcdef01"))
        .isInstanceOf(NoSuchFileException.class);
    assertThat(new FolderLeases(gone).anyLiving(1)).isFalse();
  }

  @Test
  void anOwnerMayEndWhileItsMemoryIsLeased() throws IOException {
    Lease lease = take(1);
    owner.close();
    assertThat(path).isEmptyDirectory();
    lease.close();
  }

  /** The owner is killed. Its memory stays for its readers. */
  @Test
  void aDeadOwnersFolderStaysAsLongAsALivingReaderHasALease(@TempDir Path disk) throws Exception {
    try (ChildJvm child =
        ChildJvm.start("executor", path.toString(), APPLICATION, "3", disk.toString())) {
      Path killed = Path.of(child.line());
      Lease lease = Lease.take(killed, 1, "1", owner.incarnation());
      child.kill();
      FolderSweep.application(killed.getParent());
      assertThat(killed.resolve("segment-0")).exists();
      assertThat(Trees.contents(disk)).hasSize(2);
      lease.close();
      FolderSweep.application(killed.getParent());
      assertThat(killed).doesNotExist();
      assertThat(disk).isEmptyDirectory();
    }
  }

  @Test
  void aDeadOwnersFolderDoesNotStayForADeadReader(@TempDir Path disk) throws Exception {
    try (ChildJvm child =
        ChildJvm.start("executor", path.toString(), APPLICATION, "3", disk.toString())) {
      Path killed = Path.of(child.line());
      try (ChildJvm reader = ChildJvm.start("lease", killed.toString(), "5")) {
        reader.line();
        child.kill();
        reader.kill();
      }
      FolderSweep.application(killed.getParent());
      assertThat(killed).doesNotExist();
    }
  }

  @Test
  void leasesCountAsHeldIfTheFolderCannotBeRead() throws IOException {
    Path file = Files.createFile(owner.path().resolve("output-1-1"));
    assertThat(new FolderLeases(file).anyLiving(1)).isTrue();
  }
}
