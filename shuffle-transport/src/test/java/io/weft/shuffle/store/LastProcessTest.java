package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An executor is killed and the others end. The last process removes all files. */
class LastProcessTest {
  private static final String APPLICATION = "app-1-0123abcd";

  @TempDir Path path;
  @TempDir Path disk;

  private final List<ChildJvm> children = new ArrayList<>();
  private ChildJvm owner;
  private Path folder;

  private ChildJvm start(String... arguments) throws Exception {
    ChildJvm child = ChildJvm.start(arguments);
    children.add(child);
    return child;
  }

  @BeforeEach
  void startOwner() throws Exception {
    owner = start("executor", path.toString(), APPLICATION, "1", disk.toString());
    folder = Path.of(owner.line());
  }

  private List<ChildJvm> startReaders(int readers) throws Exception {
    List<ChildJvm> started = new ArrayList<>();
    for (int reader = 0; reader < readers; reader++) {
      String executor = Integer.toString(2 + reader);
      started.add(start("reader", path.toString(), APPLICATION, executor, folder.toString()));
    }
    for (ChildJvm reader : started) {
      reader.line();
    }
    return started;
  }

  @AfterEach
  void endAll() {
    children.forEach(ChildJvm::close);
  }

  private void assertNothingIsLeft() {
    assertThat(path).isEmptyDirectory();
    assertThat(disk).isEmptyDirectory();
  }

  /** Its own lease would keep the folder during its last sweep. */
  @Test
  void aReaderThatEndsWithoutClosingSweepsTheFolderItRead() throws Exception {
    List<ChildJvm> readers = startReaders(1);
    owner.kill();
    assertThat(folder).exists();
    ChildJvm.terminateAll(readers);
    assertNothingIsLeft();
  }

  @Test
  void ofReadersThatEndAtOnceTheLastSweeps() throws Exception {
    List<ChildJvm> readers = startReaders(3);
    owner.kill();
    ChildJvm.terminateAll(readers);
    assertNothingIsLeft();
  }

  @Test
  void aFolderStaysUntilItsLivingReaderEnds() throws Exception {
    List<ChildJvm> readers = startReaders(2);
    owner.kill();
    readers.get(0).terminate();
    assertThat(folder.resolve("segment-0")).exists();
    assertThat(readers.get(1).finish()).isZero();
    assertNothingIsLeft();
  }

  @Test
  void aLivingOwnerStaysWithTheLeasesOfOthers() throws Exception {
    ChildJvm.terminateAll(startReaders(1));
    assertThat(folder.resolve("alive")).exists();
    owner.terminate();
    assertNothingIsLeft();
  }

  private ChildJvm startDriver(String token) throws Exception {
    ChildJvm driver = start("driver", folder.toString(), token);
    assertThat(driver.line()).isEqualTo("knows it");
    return driver;
  }

  private String token() throws Exception {
    return Files.readString(folder.resolve("token"));
  }

  private static void stop(ChildJvm driver) throws Exception {
    driver.goOn();
    assertThat(driver.line()).isEqualTo("has swept");
  }

  @Test
  void aDriverThatStopsTheApplicationSweepsTheLastExecutorOfItsHost() throws Exception {
    ChildJvm driver = startDriver(token());
    owner.kill();
    stop(driver);
    assertNothingIsLeft();
    assertThat(driver.finish()).isZero();
  }

  /** Sweeps of executors leave a young unfinished folder alone. */
  @Test
  void aDriverThatStopsTheApplicationSweepsAnExecutorThatWasKilledAtItsStart() throws Exception {
    ChildJvm driver = startDriver(token());
    Path unfinished = Files.createDirectory(folder.resolveSibling(".starting-2-00000000"));
    Files.createFile(unfinished.resolve("token"));
    owner.terminate();
    assertThat(unfinished).exists();
    stop(driver);
    assertNothingIsLeft();
    assertThat(driver.finish()).isZero();
  }

  @Test
  void aDriverThatEndsSweepsAnExecutorThatDiedAfterThat() throws Exception {
    ChildJvm driver = startDriver(token());
    stop(driver);
    owner.kill();
    assertThat(driver.finish()).isZero();
    assertNothingIsLeft();
  }

  @Test
  void aDriverLeavesLivingExecutorsAlone() throws Exception {
    ChildJvm driver = startDriver(token());
    stop(driver);
    assertThat(driver.finish()).isZero();
    assertThat(folder.resolve("alive")).exists();
    owner.terminate();
    assertNothingIsLeft();
  }

  @Test
  void aDriverLeavesFoldersThatALivingExecutorReads() throws Exception {
    List<ChildJvm> readers = startReaders(1);
    ChildJvm driver = startDriver(token());
    owner.kill();
    stop(driver);
    assertThat(driver.finish()).isZero();
    assertThat(folder.resolve("segment-0")).exists();
    ChildJvm.terminateAll(readers);
    assertNothingIsLeft();
  }

  /** For example a folder of the same name in another container. */
  @Test
  void aDriverLeavesFoldersWithAnotherTokenAlone() throws Exception {
    ChildJvm driver = startDriver("0".repeat(32));
    owner.kill();
    stop(driver);
    assertThat(driver.finish()).isZero();
    assertThat(folder.resolve("segment-0")).exists();
  }
}
