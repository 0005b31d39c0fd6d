package io.weft.examples.bench.collectives;

import io.weft.collectives.UniqueId;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * The arguments of a rank's process.
 *
 * @param kind its transport and buffers
 * @param work folder of the rendezvous
 * @param memory folder of its shared memory
 * @param id of the communicator
 */
record RankOptions(Kind kind, Path work, Path memory, UniqueId id, int rank, int nranks) {
  /** The transport of ranks and the place of their buffers. */
  enum Kind {
    /** Shared memory; buffers are private. */
    SHM("Weft"),
    /** Shared memory; buffers are in it too, so there is no staging copy. */
    SYMMETRIC("Weft/symmetric"),
    /** As SYMMETRIC, in replays of 50 recorded operations; for messages of up to 32 KiB. */
    RECORDED("Weft/recorded"),
    /** TCP, as between different hosts. */
    TCP("Weft/tcp");

    private final String title;

    Kind(String title) {
      this.title = title;
    }

    String title() {
      return title;
    }

    /** Whether it runs a case. */
    boolean has(CollectiveCase test) {
      return this != RECORDED || test.bytes() <= RankMain.RankWork.RECORDED_BYTES;
    }

    String label() {
      return name().toLowerCase(Locale.ROOT);
    }

    static Kind of(String label) {
      return valueOf(label.toUpperCase(Locale.ROOT));
    }
  }

  List<String> arguments() {
    return List.of(
        kind.label(),
        work.toString(),
        memory.toString(),
        id.encode(),
        Integer.toString(rank),
        Integer.toString(nranks));
  }

  static RankOptions parse(String[] arguments) {
    return new RankOptions(
        Kind.of(arguments[0]),
        Path.of(arguments[1]),
        Path.of(arguments[2]),
        UniqueId.decode(arguments[3]),
        Integer.parseInt(arguments[4]),
        Integer.parseInt(arguments[5]));
  }
}
