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
