package io.weft.examples.bench.collectives;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The processor of each rank. MPI launchers bind ranks, so Weft's ranks are bound too. Unbound
 * ranks sometimes share one processor and then wait for each other.
 *
 * @param processors one for each rank, in order; empty for unbound ranks on all sides
 */
record RankPlacement(List<Integer> processors) {
  private static final Path STATUS = Path.of("/proc/self/status");
  private static final String ALLOWED = "Cpus_allowed_list:";

  /** Unbound ranks. */
  static final RankPlacement FREE = new RankPlacement(List.of());

  RankPlacement {
    processors = List.copyOf(processors);
  }

  /** Binds each rank to a processor; if there are too few or no taskset, ranks are unbound. */
  static RankPlacement bound(int nranks) throws IOException {
    if (!CollectivesBench.isOnPath("taskset") || !Files.isReadable(STATUS)) {
      return FREE;
    }
    List<Integer> allowed = new ArrayList<>();
    for (String line : Files.readAllLines(STATUS)) {
      if (line.startsWith(ALLOWED)) {
        allowed.addAll(parse(line.substring(ALLOWED.length()).strip()));
      }
    }
    return allowed.size() < nranks ? FREE : new RankPlacement(allowed.subList(0, nranks));
  }

  /** Parses a list of numbers such as 0-3,8. */
  static List<Integer> parse(String ranges) {
    List<Integer> numbers = new ArrayList<>();
    for (String range : ranges.split(",", -1)) {
      String[] ends = range.split("-", -1);
      int last = Integer.parseInt(ends[ends.length - 1]);
      for (int number = Integer.parseInt(ends[0]); number <= last; number++) {
        numbers.add(number);
      }
    }
    return numbers;
  }

  boolean isBound() {
    return !processors.isEmpty();
  }

  /** Returns the prefix of a rank's command. */
  List<String> launcher(int rank) {
    return isBound() ? List.of("taskset", "-c", Integer.toString(processors.get(rank))) : List.of();
  }

  /** Returns the options of mpirun, which binds two ranks to a core each by default. */
  List<String> mpiOptions() {
    return List.of("--bind-to", isBound() ? "core" : "none");
  }
}
