package io.weft.memory;

import java.io.IOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates the files of segments in other folders, used in turn. Each is a file {@code
 * weft-segment-<n>} in a sub-folder {@code weft-<arena folder>-<random>} of mode 0700. The arena's
 * folder has symbolic links to them. The link is created before the file, so the folder of a dead
 * process leads to all its files.
 */
final class LinkedSegmentFiles implements SegmentFiles {
  private static final FileAttribute<?> OWNER_ONLY =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

  private static final Logger LOG = LoggerFactory.getLogger(LinkedSegmentFiles.class);

  private final List<SegmentFolder> folders;
  private final String subFolder;
  private final AtomicInteger turn = new AtomicInteger();
  private final Set<Path> made = ConcurrentHashMap.newKeySet();

  LinkedSegmentFiles(Path arenaFolder, List<SegmentFolder> folders) {
    this.folders = folders;
    this.subFolder =
        String.format(
            "weft-%s-%08x", arenaFolder.getFileName(), ThreadLocalRandom.current().nextInt());
  }

  static LinkedSegmentFiles of(ArenaOptions options, SegmentStorage storage) {
    List<SegmentFolder> folders = new ArrayList<>();
    for (Path folder : options.diskFolders()) {
      folders.add(new SegmentFolder(folder, options.marginBytes(), MemoryLimit.NONE, storage));
    }
    return new LinkedSegmentFiles(options.folder(), folders);
  }

  @Override
  public MappedSegment create(Path name, long bytes) throws IOException {
    IOException failure = new IOException("there is no folder for disk segments");
    int first = turn.getAndIncrement();
    for (int i = 0; i < folders.size(); i++) {
      try {
        return createIn(folders.get(Math.floorMod(first + i, folders.size())), name, bytes);
      } catch (IOException e) {
        if (i > 0) {
          e.addSuppressed(failure);
        }
        failure = e;
      }
    }
    throw failure;
  }

  private MappedSegment createIn(SegmentFolder folder, Path name, long bytes) throws IOException {
    Path parent = folder.path().toAbsolutePath().resolve(subFolder);
    Path file = parent.resolve("weft-" + name.getFileName());
    return folder.attempt(
        bytes,
        storage -> {
          makeFolder(parent);
          Files.createSymbolicLink(name, file);
          try {
            return storage.reserve(file, bytes);
          } catch (IOException | RuntimeException | Error e) {
            Files.deleteIfExists(name);
            throw e;
          }
        });
  }

  /** Links the file into a folder of this arena on its file system. */
  @Override
  public MappedSegment adopt(Path name, Path source) throws IOException {
    Path target = Files.readSymbolicLink(source);
    IOException failure =
        new IOException("there is no folder for disk segments on the file system of " + target);
    for (SegmentFolder folder : folders) {
      try {
        if (!sameFileSystem(target, folder.path())) {
          continue;
        }
        return adoptIn(folder, name, target);
      } catch (IOException e) {
        e.addSuppressed(failure);
        failure = e;
      }
    }
    throw failure;
  }

  private MappedSegment adoptIn(SegmentFolder folder, Path name, Path target) throws IOException {
    Path parent = folder.path().toAbsolutePath().resolve(subFolder);
    Path file = parent.resolve("weft-" + name.getFileName());
    makeFolder(parent);
    Files.createSymbolicLink(name, file);
    MappedSegment mapping = null;
    try {
      Files.createLink(file, target);
      mapping = MappedSegment.attach(file);
      return mapping;
    } finally {
      if (mapping == null) {
        Files.deleteIfExists(file);
        Files.deleteIfExists(name);
      }
    }
  }

  /** Whether a file can have a second name in a folder. A bind mount may still forbid it. */
  private static boolean sameFileSystem(Path file, Path folder) throws IOException {
    return Files.getAttribute(file, "unix:dev").equals(Files.getAttribute(folder, "unix:dev"));
  }

  private void makeFolder(Path parent) throws IOException {
    try {
      Files.createDirectory(parent, OWNER_ONLY);
    } catch (FileAlreadyExistsException e) {
      // This arena created it before: the name is random, so no other process has it.
      LOG.debug("{} exists already", parent);
    }
    made.add(parent);
  }

  @Override
  public void delete(Path name, MappedSegment segment) throws IOException {
    Files.deleteIfExists(segment.file());
    Files.deleteIfExists(name);
  }

  @Override
  public void close() throws IOException {
    for (Path folder : made) {
      try {
        Files.deleteIfExists(folder);
      } catch (DirectoryNotEmptyException e) {
        throw new IOException(folder + " contains files that the arena did not create", e);
      }
    }
  }
}
