package io.weft.shuffle.fetch;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.weft.shuffle.fetch.InFlightWindow.ReceiveBudget;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * The bytes that all readers of an executor have requested stay within the bound, and are counted
 * correctly.
 */
final class ReceiveBudgetStress {
  private static final int MOST = 10;

  private ReceiveBudgetStress() {}

  /** Two readers request more than is left for both. */
  @JCStressTest
  @Outcome(id = "1, 0, 6", expect = ACCEPTABLE, desc = "The first reader gets it.")
  @Outcome(id = "0, 1, 7", expect = ACCEPTABLE, desc = "The second reader gets it.")
  @Outcome(expect = FORBIDDEN, desc = "Both, or none, or a wrong sum.")
  @State
  public static class Scarce {
    private final ReceiveBudget budget = new ReceiveBudget(MOST);

    @Actor
    public void first(III_Result result) {
      result.r1 = budget.tryReserve(6) ? 1 : 0;
    }

    @Actor
    public void second(III_Result result) {
      result.r2 = budget.tryReserve(7) ? 1 : 0;
    }

    @Arbiter
    public void look(III_Result result) {
      result.r3 = (int) budget.bytes();
    }
  }

  /** One reader requests the bytes that another one returns, and a third must always get some. */
  @JCStressTest
  @Outcome(id = "0, 3", expect = ACCEPTABLE, desc = "Too early, or too late.")
  @Outcome(id = "1, 9", expect = ACCEPTABLE, desc = "In time.")
  @Outcome(expect = FORBIDDEN, desc = "Bytes are lost or counted twice.")
  @State
  public static class GivenBack {
    private final ReceiveBudget budget = new ReceiveBudget(MOST);

    /** All but four bytes are in use. */
    public GivenBack() {
      budget.reserve(MOST - 4);
    }

    @Actor
    public void give() {
      budget.release(MOST - 4);
    }

    @Actor
    public void take(II_Result result) {
      result.r1 = budget.tryReserve(6) ? 1 : 0;
    }

    @Actor
    public void force() {
      budget.reserve(3);
    }

    @Arbiter
    public void look(II_Result result) {
      result.r2 = (int) budget.bytes();
    }
  }
}
