package io.weft.collectives.symmetric;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** Memory of a window is freed once, after its last use. */
@JCStressTest
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Used, then freed.")
@Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "Freed, not used.")
@Outcome(expect = FORBIDDEN, desc = "Freed while in use, freed twice or never.")
@State
public class UsesStress {
  private final AtomicInteger freed = new AtomicInteger();
  private final UseCount uses = new UseCount(freed::incrementAndGet);

  @Actor
  public void use(II_Result result) {
    try {
      uses.retain();
    } catch (IllegalStateException e) {
      return;
    }
    result.r1 = freed.get() == 0 ? 1 : 2;
    uses.release();
  }

  @Actor
  public void end() {
    uses.release();
  }

  @Arbiter
  public void count(II_Result result) {
    result.r2 = freed.get();
  }
}
