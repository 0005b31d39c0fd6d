package io.weft.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Creates segments in the arena's folder itself. */
final class FolderSegmentFiles implements SegmentFiles {
  private final SegmentFolder folder;

  FolderSegmentFiles(SegmentFolder folder) {
    this.folder = folder;
  }

  static FolderSegmentFiles of(ArenaOptions options, SegmentStorage storage) {
    return new FolderSegmentFiles(
        new SegmentFolder(options.folder(), options.marginBytes(), storage));
  }

  @Override
  public MappedSegment create(Path name, long bytes) throws IOException {
    return folder.attempt(bytes, storage -> storage.reserve(name, bytes));
  }

  @Override
  public void delete(Path name, MappedSegment segment) throws IOException {
    Files.deleteIfExists(name);
  }

  @Override
  public void close() {}
}
