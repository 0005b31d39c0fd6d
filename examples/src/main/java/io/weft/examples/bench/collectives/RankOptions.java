package io.weft.examples.bench.collectives;

import io.weft.collectives.UniqueId;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * What a rank's process is started with.
 *
 * @param kind how it talks to the others
 * @param work where they meet
 * @param memory where its shared memory goes
 * @param id of the communicator
 */
public record RankOptions(Kind kind, Path work, Path memory, UniqueId id, int rank, int nranks) {
  /** How ranks talk and where their buffers are. */
  public enum Kind {
    /** Shared memory, buffers of the ranks' own. */
    SHM("Weft"),
    /** Shared memory, buffers in it too: no copy but the operation's own. */
    SYMMETRIC("Weft/symmetric"),
    /** TCP, as between hosts. */
    TCP("Weft/tcp");

    private final String title;

    Kind(String title) {
      this.title = title;
    }

    String title() {
      return title;
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
