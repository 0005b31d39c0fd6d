package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * A bootstrap for ranks that share a folder, on one host or on a network file system. In every
 * round each rank writes a file and reads those of all. It writes under another name first, so that
 * the file appears complete.
 *
 * <p>For one thread at a time.
 */
public final class FileBootstrap implements Bootstrap {
  private static final long POLL_NANOS = 500_000;

  private final Path folder;
  private final UniqueId id;
  private final int rank;
  private final int nranks;

  private FileBootstrap(Path folder, UniqueId id, int rank, int nranks) {
    this.folder = folder;
    this.id = id;
    this.rank = rank;
    this.nranks = nranks;
  }

  /**
   * Opens one rank's end.
   *
   * @param parent a folder that all ranks see; a new folder is made in it for this rendezvous, and
   *     the last rank to close deletes it
   * @param id the same on all ranks, never used before
   */
  public static FileBootstrap open(Path parent, UniqueId id, int rank, int nranks)
      throws IOException {
    Path folder = Files.createDirectories(parent.resolve("bootstrap-" + id.name()));
    return new FileBootstrap(folder, id, rank, nranks);
  }

  @Override
  public UniqueId id() {
    return id;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int nranks() {
    return nranks;
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    try {
      write(round, mine);
      List<byte[]> all = new ArrayList<>();
      for (int peer = 0; peer < nranks; peer++) {
        all.add(read(round, peer, deadline));
      }
      return all;
    } catch (IOException e) {
      throw new CollectiveException(
          Kind.IO,
          List.of(rank),
          "rank " + rank + " cannot use the bootstrap folder " + folder + ": " + e,
          e);
    }
  }

  private Path file(String round, int peer) {
    return folder.resolve(round + "-" + peer);
  }

  private void write(String round, byte[] mine) throws IOException {
    Path draft = folder.resolve("draft-" + round + "-" + rank);
    Files.write(draft, mine);
    Files.move(draft, file(round, rank), StandardCopyOption.ATOMIC_MOVE);
  }

  private byte[] read(String round, int peer, Deadline deadline) throws IOException {
    while (true) {
      try {
        return Files.readAllBytes(file(round, peer));
      } catch (NoSuchFileException e) {
        if (deadline.expired() || Thread.currentThread().isInterrupted()) {
          throw missing(round, deadline);
        }
        LockSupport.parkNanos(POLL_NANOS);
      }
    }
  }

  private CollectiveException missing(String round, Deadline deadline) {
    List<Integer> absent = new ArrayList<>();
    for (int peer = 0; peer < nranks; peer++) {
      if (!Files.exists(file(round, peer))) {
        absent.add(peer);
      }
    }
    return new CollectiveException(
        Thread.currentThread().isInterrupted() ? Kind.ABORTED : Kind.TIMEOUT,
        absent,
        CollectiveException.name(absent)
            + " did not reach round "
            + round
            + " of the bootstrap in "
            + folder
            + " within "
            + deadline);
  }

  /** The last rank to close deletes the folder. */
  @Override
  public void close() {
    try {
      write("closed", new byte[0]);
      for (int peer = 0; peer < nranks; peer++) {
        if (!Files.exists(file("closed", peer))) {
          return;
        }
      }
      deleteAll();
    } catch (NoSuchFileException e) {
      // Another rank saw that all had closed, and deleted the folder first.
    } catch (IOException e) {
      throw new CollectiveException(
          Kind.IO, List.of(rank), "cannot close the bootstrap in " + folder + ": " + e, e);
    }
  }

  private void deleteAll() throws IOException {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
      for (Path file : files) {
        Files.deleteIfExists(file);
      }
    }
    Files.deleteIfExists(folder);
  }
}
