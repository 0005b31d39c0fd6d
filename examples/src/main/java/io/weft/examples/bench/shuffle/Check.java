package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.QueryResult;
import io.weft.examples.jobs.ResultRows;
import io.weft.examples.side.SideException;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.SideTask;
import java.util.Optional;

/** Compares the results of a subject. Sides are checked one after the other. */
interface Check {
  /**
   * Runs the subject on a side.
   *
   * @return the difference to the result of the first side that was checked; empty if there is none
   */
  Optional<String> difference(SideProcess side) throws SideException, InterruptedException;

  /** Compares a short text, which has to be equal. */
  static Check fingerprint(SideTask<String> task) {
    return new Check() {
      private String expected;

      @Override
      public Optional<String> difference(SideProcess side)
          throws SideException, InterruptedException {
        String actual = side.call(task);
        if (expected == null) {
          expected = actual;
        }
        return expected.equals(actual)
            ? Optional.empty()
            : Optional.of("fingerprint " + actual + ", not " + expected);
      }
    };
  }

  /** Compares the rows of a query. Its ORDER BY and LIMIT may allow several results. */
  static Check rows(SideTask<ResultRows> task, SideTask<QueryResult.Allowed> everyAllowed) {
    return new Check() {
      private SideProcess first;
      private ResultRows expected;
      private QueryResult.Allowed allowed;

      @Override
      public Optional<String> difference(SideProcess side)
          throws SideException, InterruptedException {
        ResultRows actual = side.call(task);
        if (expected == null) {
          first = side;
          expected = actual;
        }
        if (expected.sameAs(actual)) {
          return Optional.empty();
        }
        if (allowed == null) {
          allowed = first.call(everyAllowed);
        }
        return allowed.objection(actual);
      }
    };
  }
}
