package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.CopyStore.CopyInput;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Copies in a file system of Hadoop, here the local one. */
class CopyFolderTest {
  private static final String WRITER = "1";
  private static final BlockKey KEY = new BlockKey(3, 7);

  @TempDir Path root;

  private CopyFolder open(String application) throws IOException {
    return open(root.toUri().toString(), application, WRITER);
  }

  private static CopyFolder open(String path, String application, String writer)
      throws IOException {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.weft.survive.path", path)
            .set(StoreFileSystem.SETTING, StoreFileSystem.class.getName());
    return CopyFolder.open(conf, application, writer);
  }

  private static void write(CopyFolder folder, byte... bytes) throws IOException {
    try (OutputStream out = folder.create(KEY)) {
      out.write(bytes);
    }
  }

  private static byte[] read(CopyFolder folder, String writer) throws IOException {
    byte[] read = new byte[10];
    try (CopyInput input = folder.open(KEY, writer)) {
      return Arrays.copyOf(read, input.read(0, read, 0, 1, read.length));
    }
  }

  /** Also without exclusive creation, no writer changes or deletes the file of the other one. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void twoWritersOfOneOutputHaveTheirOwnFiles(boolean store) throws IOException {
    String path = store ? StoreFileSystem.path(root) : root.toUri().toString();
    try (CopyFolder one = open(path, "app-1", "1");
        CopyFolder other = open(path, "app-1", "a/2")) {
      one.create();
      write(one, (byte) 0, (byte) 0, (byte) 0);
      write(one, (byte) 1, (byte) 2);
      OutputStream late = other.create(KEY);
      assertThat(read(other, "1")).as("before the end of a late writer").containsExactly(1, 2);
      late.write(3);
      late.close();
      assertThat(read(one, "a/2")).containsExactly(3);
      other.delete(KEY);
      assertThat(read(other, "1")).containsExactly(1, 2);
      assertThatThrownBy(() -> read(one, "a/2")).isInstanceOf(IOException.class);
      one.deleteShuffle(KEY.shuffleId());
      assertThatThrownBy(() -> read(other, "1")).isInstanceOf(IOException.class);
      one.deleteAll();
      assertThat(applications()).isEmpty();
    }
  }

  @Test
  void copiesGoWithTheirShuffle() throws IOException {
    try (CopyFolder folder = open("app-1")) {
      folder.create();
      write(folder, (byte) 1, (byte) 2, (byte) 3, (byte) 4);
      byte[] read = new byte[2];
      try (CopyInput input = folder.open(KEY, WRITER)) {
        assertThat(input.read(1, read, 0, 2, 2)).isEqualTo(2);
        byte[] beyond = new byte[2];
        assertThatThrownBy(() -> input.read(3, beyond, 0, 2, 2)).isInstanceOf(IOException.class);
      }
      assertThat(read).containsExactly(2, 3);
      folder.deleteShuffle(3);
      assertThatThrownBy(() -> folder.open(KEY, WRITER)).isInstanceOf(IOException.class);
      folder.deleteShuffle(3);
      folder.deleteAll();
      assertThat(applications()).isEmpty();
    }
  }

  @Test
  void onlyTheUserReadsTheFolder() throws IOException {
    try (CopyFolder folder = open("app-1")) {
      folder.create();
    }
    Path application = applications().get(0);
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(application)))
        .isEqualTo("rwx------");
  }

  @Test
  void onlyApplicationsWithoutAFreshMarkAreSwept() throws IOException {
    for (String name : List.of("dead", "living", "unmarked")) {
      try (CopyFolder folder = open(name)) {
        folder.create();
        folder.create(KEY).close();
      }
    }
    FileTime old = FileTime.from(Instant.now().minus(Duration.ofHours(2)));
    for (Path application : applications()) {
      switch (application.getFileName().toString()) {
        case "dead" -> Files.setLastModifiedTime(application.resolve("alive"), old);
        case "living" -> Files.setLastModifiedTime(application, old);
        default -> {
          Files.delete(application.resolve("alive"));
          Files.setLastModifiedTime(application, old);
        }
      }
    }
    List<String> swept =
        CopyFolder.sweep(root.toString(), new Configuration(), Duration.ofHours(1));
    assertThat(swept).hasSize(2);
    assertThat(applications()).singleElement().asString().endsWith("living");
    Path nothing = root.resolve("nothing");
    assertThat(CopyFolder.sweep(nothing.toString(), new Configuration(), Duration.ZERO)).isEmpty();
  }

  /** The driver then creates it again, so that executors go on copying. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aFolderThatWasDeletedHasNoMark(boolean store) throws IOException {
    String path = store ? StoreFileSystem.path(root) : root.toUri().toString();
    try (CopyFolder folder = open(path, "app-1", WRITER)) {
      folder.create();
      folder.mark();
      folder.deleteAll();
      assertThatThrownBy(folder::mark).isInstanceOf(NoSuchFileException.class);
      assertThat(applications()).isEmpty();
      folder.create();
      write(folder, (byte) 1);
      assertThat(read(folder, WRITER)).containsExactly(1);
    }
  }

  /** A driver renews its mark after a part of its own time. */
  @Test
  void theTimeOfTheApplicationCountsIfItIsLonger() throws IOException {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.weft.survive.path", root.toUri().toString())
            .set("spark.weft.survive.sweepAge", "1d");
    try (CopyFolder folder = CopyFolder.open(conf, "app-1", WRITER)) {
      folder.create();
    }
    Path mark = applications().get(0).resolve("alive");
    Files.setLastModifiedTime(mark, FileTime.from(Instant.now().minus(Duration.ofHours(5))));
    assertThat(CopyFolder.sweep(root.toString(), new Configuration(), Duration.ofHours(1)))
        .isEmpty();
    Files.setLastModifiedTime(mark, FileTime.from(Instant.now().minus(Duration.ofHours(25))));
    assertThat(CopyFolder.sweep(root.toString(), new Configuration(), Duration.ofHours(1)))
        .hasSize(1);
  }

  /** In a folder that all users may write to, another one may have made a link of that name. */
  @Test
  void linksAndFoldersThatOthersMayWriteToAreNotUsed(@TempDir Path target) throws IOException {
    try (CopyFolder folder = open("app-1")) {
      folder.create();
      folder.deleteAll();
    }
    Path ofUser;
    try (Stream<Path> users = Files.list(root)) {
      ofUser = users.findFirst().orElseThrow();
    }
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(ofUser)))
        .isEqualTo("rwx------");
    Files.delete(ofUser);
    Path victim = Files.createDirectories(target.resolve("app-1").resolve("3"));
    Files.setLastModifiedTime(victim.getParent(), FileTime.fromMillis(0));
    Files.createSymbolicLink(ofUser, target);
    assertRefused();
    assertThat(victim).isEmptyDirectory();
    Files.delete(ofUser);
    Files.createDirectories(ofUser.resolve("app-1"));
    Files.setPosixFilePermissions(ofUser, PosixFilePermissions.fromString("rwxrwxrwx"));
    Files.setLastModifiedTime(ofUser.resolve("app-1"), FileTime.fromMillis(0));
    assertRefused();
    assertThat(ofUser.resolve("app-1")).isEmptyDirectory();
  }

  private void assertRefused() throws IOException {
    try (CopyFolder folder = open("app-1")) {
      assertThatThrownBy(folder::create).isInstanceOf(IOException.class);
      assertThatThrownBy(() -> folder.create(KEY)).isInstanceOf(IOException.class);
      assertThatThrownBy(() -> folder.open(KEY, WRITER)).hasMessageContaining("weft-");
    }
    assertThatThrownBy(
            () -> CopyFolder.sweep(root.toString(), new Configuration(), Duration.ofHours(1)))
        .isInstanceOf(IOException.class);
  }

  private List<Path> applications() throws IOException {
    Path ofUser;
    try (Stream<Path> users = Files.list(root)) {
      ofUser = users.findFirst().orElseThrow();
    }
    try (Stream<Path> all = Files.list(ofUser)) {
      return all.toList();
    }
  }
}
