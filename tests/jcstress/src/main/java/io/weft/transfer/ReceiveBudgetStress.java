package io.weft.transfer;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.II_Result;

/** What all readers of an executor have asked for stays within its bound, and is counted right. */
public final class ReceiveBudgetStress {
  private static final int MOST = 10;

  private ReceiveBudgetStress() {}

  /** Two want more than there is for both. */
  @JCStressTest
  @Outcome(id = "1, 0, 6", expect = ACCEPTABLE, desc = "The first one has it.")
  @Outcome(id = "0, 1, 7", expect = ACCEPTABLE, desc = "The second one has it.")
  @Outcome(expect = FORBIDDEN, desc = "Both, or none, or a sum that is wrong.")
  @State
  public static class Scarce {
    private final ReceiveBudget budget = new ReceiveBudget(MOST);

    @Actor
    public void first(III_Result result) {
      result.r1 = budget.take(6) ? 1 : 0;
    }

    @Actor
    public void second(III_Result result) {
      result.r2 = budget.take(7) ? 1 : 0;
    }

    @Arbiter
    public void look(III_Result result) {
      result.r3 = (int) budget.bytes();
    }
  }

  /** One wants what another one gives back, and a third has to have something at any rate. */
  @JCStressTest
  @Outcome(id = "0, 3", expect = ACCEPTABLE, desc = "Too early, or too late.")
  @Outcome(id = "1, 9", expect = ACCEPTABLE, desc = "In time.")
  @Outcome(expect = FORBIDDEN, desc = "Bytes that are lost or counted twice.")
  @State
  public static class GivenBack {
    private final ReceiveBudget budget = new ReceiveBudget(MOST);

    /** All but four are taken. */
    public GivenBack() {
      budget.force(MOST - 4);
    }

    @Actor
    public void give() {
      budget.give(MOST - 4);
    }

    @Actor
    public void take(II_Result result) {
      result.r1 = budget.take(6) ? 1 : 0;
    }

    @Actor
    public void force() {
      budget.force(3);
    }

    @Arbiter
    public void look(II_Result result) {
      result.r2 = (int) budget.bytes();
    }
  }
}
