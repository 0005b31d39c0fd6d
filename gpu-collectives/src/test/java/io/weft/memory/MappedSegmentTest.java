package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MappedSegmentTest {
  @TempDir Path folder;

  @Test
  void aReservedFileIsFullLengthZeroAndPrivate() throws IOException {
    Path file = folder.resolve("segment-0");
    try (MappedSegment segment = MappedSegment.reserve(file, (2 << 20) + 64)) {
      assertThat(segment.size()).isEqualTo((2 << 20) + 64);
      assertThat(segment.file()).isEqualTo(file);
      assertThat(Files.size(file)).isEqualTo((2 << 20) + 64);
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
          .isEqualTo("rw-------");
      for (long offset = 0; offset < segment.size(); offset += 8) {
        assertThat(Memory.getLong(segment.address() + offset)).isZero();
      }
    }
  }

  @Test
  void anAttachedSegmentSeesWhatTheOwnerWritesAndCannotWrite() throws IOException {
    Path file = folder.resolve("segment-0");
    try (MappedSegment owner = MappedSegment.reserve(file, 8192);
        MappedSegment reader = MappedSegment.attach(file)) {
      Memory.putLongRelease(owner.address() + 4096, 42);
      assertThat(reader.size()).isEqualTo(8192);
      assertThat(Memory.getLongAcquire(reader.address() + 4096)).isEqualTo(42);
      assertThat(reader.slice(0, 8).isReadOnly()).isTrue();
    }
  }

  /** The pages leave the process, the bytes stay; also for a thread that writes at that moment. */
  @Test
  void droppedPagesAreMappedAgainWithTheirBytes() throws Exception {
    int bytes = 64 << 20;
    Path file = folder.resolve("segment-0");
    try (MappedSegment segment = MappedSegment.reserve(file, bytes)) {
      Memory.setMemory(segment.address(), bytes, (byte) 7);
      long before = residentFiles();
      segment.dropPages();
      assertThat(Memory.dropsPages()).as("with java.nio open").isTrue();
      assertThat(before - residentFiles()).as("bytes dropped").isGreaterThan(bytes / 2);
      Thread dropper =
          new Thread(
              () -> {
                for (int i = 0; i < 1000; i++) {
                  segment.dropPages();
                }
              });
      dropper.start();
      for (int at = 0; at < bytes; at += 4096) {
        assertThat(Memory.getLong(segment.address() + at)).isEqualTo(0x0707070707070707L);
        Memory.putLong(segment.address() + at, at);
      }
      dropper.join();
      for (int at = 0; at < bytes; at += 4096) {
        assertThat(Memory.getLong(segment.address() + at)).isEqualTo(at);
      }
      segment.close();
      segment.dropPages();
    }
  }

  private static long residentFiles() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith("RssFile:") || line.startsWith("RssShmem:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
        .sum();
  }

  /** Private memory has no file, so dropping its pages would lose its bytes. */
  @Test
  void privateMemoryKeepsItsPages() throws IOException {
    try (MappedSegment segment = MappedSegment.ofPrivateMemory(folder.resolve("none"), 1 << 20)) {
      Memory.setMemory(segment.address(), 1 << 20, (byte) 7);
      segment.dropPages();
      assertThat(Memory.getLong(segment.address() + (1 << 19))).isEqualTo(0x0707070707070707L);
    }
  }

  @Test
  void aMappingOutlivesItsFile() throws IOException {
    Path file = folder.resolve("segment-0");
    try (MappedSegment owner = MappedSegment.reserve(file, 4096)) {
      Files.delete(file);
      Memory.putLong(owner.address(), 7);
      assertThat(owner.slice(0, 8).get(0) + owner.slice(0, 8).get(7)).isEqualTo(7);
    }
  }

  @Test
  void slicesAreBoundsChecked() throws IOException {
    try (MappedSegment segment = MappedSegment.reserve(folder.resolve("segment-0"), 4096)) {
      assertThat(segment.slice(4000, 96).capacity()).isEqualTo(96);
      assertThatThrownBy(() -> segment.slice(4000, 97))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> segment.slice(-1, 1)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> segment.slice(1L << 40, 1))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @Test
  void aClosedSegmentGivesNoSlices() throws IOException {
    MappedSegment segment = MappedSegment.reserve(folder.resolve("segment-0"), 4096);
    segment.close();
    segment.close();
    assertThatThrownBy(() -> segment.slice(0, 1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("segment-0");
  }

  @Test
  void aForeignFileIsNeitherTakenNorDeleted() throws IOException {
    Path file = Files.writeString(folder.resolve("segment-0"), "other content");
    assertThatThrownBy(() -> MappedSegment.reserve(file, 4096))
        .isInstanceOf(FileAlreadyExistsException.class);
    assertThat(file).hasContent("other content");
  }

  @Test
  void aMissingFileIsReportedAsSuch() {
    assertThatThrownBy(() -> MappedSegment.attach(folder.resolve("gone")))
        .isInstanceOf(NoSuchFileException.class);
  }

  @Test
  void sizesOutOfRangeAreRefused() {
    for (long bytes : new long[] {0, -1, Integer.MAX_VALUE, Long.MAX_VALUE}) {
      assertThatThrownBy(() -> MappedSegment.reserve(folder.resolve("segment-0"), bytes))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining(Long.toString(bytes));
    }
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void anInterruptedThreadGetsItsSegmentAndStaysInterrupted() throws IOException {
    Path file = folder.resolve("segment-0");
    Thread.currentThread().interrupt();
    try (MappedSegment segment = MappedSegment.reserve(file, 4 << 20)) {
      assertThat(segment.size()).isEqualTo(4 << 20);
      try (MappedSegment reader = MappedSegment.attach(file)) {
        assertThat(reader.size()).isEqualTo(4 << 20);
      }
      assertThat(Thread.interrupted()).isTrue();
    } finally {
      Thread.interrupted();
    }
  }
}
