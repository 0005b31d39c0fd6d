package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.OpenTables;
import io.weft.examples.side.SideException;
import io.weft.examples.side.SideProcess;
import io.weft.examples.terminal.Progress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Compares the results of subjects on all sides, without measuring. For one use and one thread. */
final class CompareRun {
  private final List<SideProcess> sides;
  private final Progress progress;
  private final Map<SideProcess, OpenTables> opened = new HashMap<>();

  CompareRun(List<SideProcess> sides, Progress progress) {
    this.sides = List.copyOf(sides);
    this.progress = progress;
  }

  /** Compares one subject after the other and returns whether all are equal and none failed. */
  boolean run(List<ShuffleBench.Subject> subjects) throws SideException, InterruptedException {
    List<String> problems = new ArrayList<>();
    for (ShuffleBench.Subject subject : subjects) {
      progress.detail("comparing " + subject.title());
      Optional<String> problem = problem(subject);
      progress.say(subject.title() + ": " + problem.orElse("equal"));
      problem.ifPresent(text -> problems.add(subject.title()));
    }
    progress.say(
        String.format(
            "%d of %d are equal%s",
            subjects.size() - problems.size(),
            subjects.size(),
            problems.isEmpty() ? "" : ", not " + String.join(", ", problems)));
    return problems.isEmpty();
  }

  private Optional<String> problem(ShuffleBench.Subject subject)
      throws SideException, InterruptedException {
    for (SideProcess side : sides) {
      try {
        subject.open(side, opened);
        Optional<String> difference = subject.check().difference(side);
        if (difference.isPresent()) {
          return difference.map(text -> side.options().label() + ": " + text);
        }
      } catch (SideException failure) {
        if (side.closed()) {
          throw failure;
        }
        return Optional.of(failure.summary());
      }
    }
    return Optional.empty();
  }
}
