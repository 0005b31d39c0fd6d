package io.weft.collectives.symmetric;

import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.RankFolder;
import io.weft.memory.Extent;
import io.weft.memory.MappedSegment;
import io.weft.memory.SharedArena;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;

/** Where a rank's part of symmetric segments comes from. Thread-safe. */
public interface SegmentMemory {
  /**
   * Reserves memory in a file that the other ranks can map.
   *
   * @param id of the communicator, for the name of the file
   * @throws IOException if there is no room; every other failure is unchecked
   */
  Part reserve(UniqueId id, int rank, long bytes) throws IOException;

  /** One rank's part of a segment. Used by one thread at a time. */
  interface Part extends AutoCloseable {
    Path file();

    /** The address of byte 0 in this process. */
    long address();

    /** Called once every rank has mapped the file, or all ranks have given up. */
    default void mapped() {}

    @Override
    void close();
  }

  /** Files in this folder, deleted as soon as all ranks have mapped them. */
  static SegmentMemory in(Path folder) {
    return (id, rank, bytes) -> {
      RankFolder own;
      try {
        own = RankFolder.create(folder, id, rank);
      } catch (IOException e) {
        throw new UncheckedIOException("no folder for symmetric memory in " + folder, e);
      }
      return new FolderPart(own, bytes);
    };
  }

  /** Segments of an arena, under its budget of shared memory. */
  static SegmentMemory of(SharedArena arena) {
    return (id, rank, bytes) -> new ArenaPart(arena, arena.allocateSegment(bytes));
  }

  /** A file that other processes find only while they map it. */
  final class FolderPart implements Part {
    private static final String FILE = "symmetric";

    private final RankFolder folder;
    private final MappedSegment segment;
    private boolean listed = true;

    FolderPart(RankFolder folder, long bytes) throws IOException {
      this.folder = folder;
      try {
        this.segment = MappedSegment.reserve(folder.path().resolve(FILE), bytes);
      } catch (IOException | RuntimeException | Error e) {
        folder.close();
        throw e;
      }
    }

    @Override
    public Path file() {
      return segment.file();
    }

    @Override
    public long address() {
      return segment.address();
    }

    @Override
    public void mapped() {
      if (listed) {
        listed = false;
        folder.close();
      }
    }

    @Override
    public void close() {
      mapped();
      segment.close();
    }
  }

  /** An extent that fills its segment. */
  record ArenaPart(SharedArena arena, Extent extent) implements Part {
    @Override
    public Path file() {
      return arena.segmentFile(extent.segment());
    }

    @Override
    public long address() {
      return extent.address();
    }

    @Override
    public void close() {
      arena.free(extent);
    }
  }
}
