package io.weft.collectives.symmetric;

import io.weft.collectives.Communicator;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.host.RankFolder;
import io.weft.memory.MappedSegment;
import io.weft.memory.OffsetLedger;
import io.weft.memory.SharedMapping;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A range of bytes that every rank has reserved, and the addresses where each rank's range is
 * mapped here. The files are filled with zeros before any rank learns their names, and deleted once
 * all ranks have mapped them.
 *
 * <p>Closing unmaps. Peers keep their own mappings of this rank's bytes.
 */
final class SymmetricSegment implements AutoCloseable {
  private static final String FILE = "symmetric";

  private final Communicator communicator;
  private final long bytes;
  private final OffsetLedger ledger;
  private final List<AutoCloseable> mappings;
  private final List<Long> bases;
  private final int region;

  private SymmetricSegment(
      Communicator communicator, long bytes, List<AutoCloseable> mappings, List<Long> bases) {
    this.communicator = communicator;
    this.bytes = bytes;
    this.ledger = new OffsetLedger(bytes);
    this.mappings = mappings;
    this.bases = bases;
    this.region =
        communicator instanceof InPlaceRegions regions ? regions.addRegion(bytes, bases) : -1;
  }

  /** Reserves and maps a segment, together with all ranks. */
  static SymmetricSegment create(
      Communicator communicator, Path parent, long bytes, BootstrapRounds rounds) {
    List<AutoCloseable> opened = new ArrayList<>();
    List<RankFolder> folder = new ArrayList<>();
    try {
      List<Long> bases = map(communicator, parent, bytes, rounds, opened, folder);
      return new SymmetricSegment(communicator, bytes, opened, bases);
    } catch (RuntimeException e) {
      closeAll(opened, e);
      throw e;
    } finally {
      // Either every rank has mapped every file, or all ranks give up.
      folder.forEach(RankFolder::close);
    }
  }

  private static List<Long> map(
      Communicator communicator,
      Path parent,
      long bytes,
      BootstrapRounds rounds,
      List<AutoCloseable> opened,
      List<RankFolder> folder) {
    List<Long> bases = new ArrayList<>();
    List<MappedSegment> own = new ArrayList<>();
    List<byte[]> files =
        rounds.exchange(
            "reserve",
            () -> {
              folder.add(RankFolder.create(parent, communicator.id(), communicator.rank()));
              Path file = folder.get(0).path().resolve(FILE);
              own.add(MappedSegment.reserve(file, bytes));
              opened.add(own.get(0));
              return file.toString().getBytes(StandardCharsets.UTF_8);
            });
    rounds.barrier(
        "map",
        () -> {
          for (int rank = 0; rank < files.size(); rank++) {
            if (rank == communicator.rank()) {
              bases.add(own.get(0).address());
            } else {
              Path file = Path.of(new String(files.get(rank), StandardCharsets.UTF_8));
              SharedMapping mapping = SharedMapping.attach(file, bytes);
              opened.add(mapping);
              bases.add(mapping.address());
            }
          }
        });
    return List.copyOf(bases);
  }

  private static void closeAll(List<AutoCloseable> opened, RuntimeException failure) {
    for (AutoCloseable mapping : opened) {
      try {
        mapping.close();
      } catch (Exception e) {
        failure.addSuppressed(e);
      }
    }
  }

  OffsetLedger ledger() {
    return ledger;
  }

  long bytes() {
    return bytes;
  }

  /** The address where a rank's byte 0 is mapped here. */
  long base(int rank) {
    return bases.get(rank);
  }

  @Override
  public void close() {
    if (region >= 0) {
      ((InPlaceRegions) communicator).removeRegion(region);
    }
    RuntimeException failure = new IllegalStateException("cannot unmap a symmetric segment");
    closeAll(mappings, failure);
    if (failure.getSuppressed().length > 0) {
      throw failure;
    }
  }
}
