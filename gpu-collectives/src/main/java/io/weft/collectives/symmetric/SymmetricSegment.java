package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.memory.OffsetLedger;
import io.weft.memory.SharedMapping;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A range of bytes that every member of a gang has reserved, and the addresses where each member's
 * range is mapped here. The memory is filled with zeros before any rank learns its file.
 *
 * <p>It may outlive the communicator that made it, and is then attached to another one with the
 * same members, whose ranks may be in another order. Closing unmaps. Peers keep their own mappings
 * of this rank's bytes.
 */
final class SymmetricSegment implements AutoCloseable {
  private final String id;
  private final long bytes;
  private final List<AutoCloseable> mappings;

  /** By position in the gang. */
  private final List<Long> addresses;

  private OffsetLedger ledger;
  private List<Long> bases = List.of();
  private Communicator communicator;
  private int region = -1;

  private SymmetricSegment(
      String id, long bytes, List<AutoCloseable> mappings, List<Long> addresses) {
    this.id = id;
    this.bytes = bytes;
    this.mappings = mappings;
    this.addresses = addresses;
    this.ledger = new OffsetLedger(bytes);
  }

  /**
   * Reserves and maps a segment, together with all ranks.
   *
   * @param number of segments that the communicator's ranks have created before
   * @throws NoSymmetricRoomException on all ranks if one has no room
   */
  static SymmetricSegment create(
      Communicator communicator,
      Gang gang,
      SegmentMemory memory,
      long bytes,
      int number,
      BootstrapRounds rounds) {
    List<AutoCloseable> opened = new ArrayList<>();
    List<SegmentMemory.Part> own = new ArrayList<>();
    try {
      List<Long> byRank = map(communicator, memory, bytes, rounds, opened, own);
      List<Long> addresses = gang.ranks().stream().map(byRank::get).toList();
      String id = communicator.id().name() + "-" + number;
      SymmetricSegment segment = new SymmetricSegment(id, bytes, opened, addresses);
      segment.attach(communicator, gang);
      return segment;
    } catch (RuntimeException | Error e) {
      closeAll(opened, e);
      throw e;
    } finally {
      own.forEach(SegmentMemory.Part::mapped);
    }
  }

  private static List<Long> map(
      Communicator communicator,
      SegmentMemory memory,
      long bytes,
      BootstrapRounds rounds,
      List<AutoCloseable> opened,
      List<SegmentMemory.Part> own) {
    int me = communicator.rank();
    List<Reservation> files =
        rounds
            .exchange(
                "reserve",
                () -> {
                  try {
                    own.add(memory.reserve(communicator.id(), me, bytes));
                  } catch (IOException e) {
                    return Reservation.none(e).encode();
                  }
                  opened.add(own.get(0));
                  return Reservation.in(own.get(0).file()).encode();
                })
            .stream()
            .map(Reservation::decode)
            .toList();
    Reservation.requireRoom(files);
    List<Long> addresses = new ArrayList<>();
    rounds.barrier(
        "map",
        () -> {
          for (int rank = 0; rank < files.size(); rank++) {
            if (rank == me) {
              addresses.add(own.get(0).address());
            } else {
              SharedMapping mapping = SharedMapping.attach(Path.of(files.get(rank).text), bytes);
              opened.add(mapping);
              addresses.add(mapping.address());
            }
          }
        });
    return List.copyOf(addresses);
  }

  /**
   * What a rank tells the others of its part.
   *
   * <pre> byte 1 with the file, or 0 with the reason why it has no room | UTF-8 text </pre>
   */
  private record Reservation(boolean hasRoom, String text) {
    static Reservation in(Path file) {
      return new Reservation(true, file.toString());
    }

    static Reservation none(IOException reason) {
      return new Reservation(false, String.valueOf(reason.getMessage()));
    }

    byte[] encode() {
      byte[] bytes = (' ' + text).getBytes(StandardCharsets.UTF_8);
      bytes[0] = (byte) (hasRoom ? 1 : 0);
      return bytes;
    }

    static Reservation decode(byte[] message) {
      if (message.length == 0) {
        throw new CollectiveException(
            Kind.MISMATCH, List.of(), "a rank sent an empty message about its memory");
      }
      String text = new String(message, 1, message.length - 1, StandardCharsets.UTF_8);
      return new Reservation(message[0] == 1, text);
    }

    /** Every rank knows the reservations of all, so all fail or none. */
    static void requireRoom(List<Reservation> all) {
      for (int rank = 0; rank < all.size(); rank++) {
        if (!all.get(rank).hasRoom) {
          throw new NoSymmetricRoomException(rank, all.get(rank).text);
        }
      }
    }
  }

  private static void closeAll(List<AutoCloseable> opened, Throwable failure) {
    for (AutoCloseable mapping : opened) {
      try {
        mapping.close();
      } catch (Exception e) {
        failure.addSuppressed(e);
      }
    }
  }

  /**
   * Makes all bytes available to a communicator of the same gang. All ranks attach the same
   * segments in the same order.
   */
  void attach(Communicator user, Gang gang) {
    communicator = user;
    ledger = new OffsetLedger(bytes);
    bases = gang.positions().stream().map(addresses::get).toList();
    region = user instanceof InPlaceRegions regions ? regions.addRegion(bytes, bases) : -1;
  }

  /** Takes the bytes away from the communicator; they stay mapped. */
  void detach() {
    if (region >= 0) {
      ((InPlaceRegions) communicator).removeRegion(region);
      region = -1;
    }
    communicator = null;
  }

  /** The same on all ranks, and never that of another segment. */
  String id() {
    return id;
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
    detach();
    RuntimeException failure = new IllegalStateException("cannot unmap a symmetric segment");
    closeAll(mappings, failure);
    if (failure.getSuppressed().length > 0) {
      throw failure;
    }
  }
}
