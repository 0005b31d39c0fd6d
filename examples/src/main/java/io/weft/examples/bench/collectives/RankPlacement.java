package io.weft.examples.bench.collectives;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Which processor each rank runs on. Launchers of MPI bind ranks, so ours are bound alike; ranks
 * that are free to move are put on one processor now and then, and wait for each other there.
 *
 * @param processors one per rank, in order; empty to let all ranks of all sides move freely
 */
record RankPlacement(List<Integer> processors) {
  private static final Path STATUS = Path.of("/proc/self/status");
  private static final String ALLOWED = "Cpus_allowed_list:";

  /** Ranks that move freely. */
  static final RankPlacement FREE = new RankPlacement(List.of());

  RankPlacement {
    processors = List.copyOf(processors);
  }

  /** A processor for each rank, where this process may use as many and can bind others. */
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

  /** Numbers out of a list such as 0-3,8. */
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

  /** What comes before the command of a rank. */
  List<String> launcher(int rank) {
    return isBound() ? List.of("taskset", "-c", Integer.toString(processors.get(rank))) : List.of();
  }

  /** For mpirun, which binds two ranks to a core each without being told. */
  List<String> mpiOptions() {
    return List.of("--bind-to", isBound() ? "core" : "none");
  }
}
