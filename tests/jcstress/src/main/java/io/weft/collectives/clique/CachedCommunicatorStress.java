package io.weft.collectives.clique;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.weft.collectives.Communicator;
import io.weft.collectives.clique.CliqueTable.CachedCommunicator;
import java.lang.reflect.Proxy;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.II_Result;

/** A communicator is closed once, when it has no lease and no new lease is possible. */
final class CachedCommunicatorStress {
  private static final int REFUSED = 0;
  private static final int OPEN = 1;
  private static final int CLOSED = 2;

  private CachedCommunicatorStress() {}

  /** A communicator that counts its closes, in the cache and idle. */
  private static class Idle {
    final AtomicInteger closed = new AtomicInteger();
    final CachedCommunicator cached = new CachedCommunicator(counting(closed));

    Idle() {
      cached.release();
    }

    int use() {
      if (!cached.lease()) {
        return REFUSED;
      }
      int seen = closed.get() == 0 ? OPEN : CLOSED;
      cached.release();
      return seen;
    }
  }

  private static Communicator counting(AtomicInteger closed) {
    return (Communicator)
        Proxy.newProxyInstance(
            Communicator.class.getClassLoader(),
            new Class<?>[] {Communicator.class},
            (proxy, method, arguments) ->
                switch (method.getName()) {
                  case "failure" -> Optional.empty();
                  case "close" -> {
                    closed.incrementAndGet();
                    yield null;
                  }
                  default -> throw new UnsupportedOperationException(method.getName());
                });
  }

  /** One thread uses it while another retires it. */
  @JCStressTest
  @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Used, then closed.")
  @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "Closed, not used.")
  @Outcome(expect = FORBIDDEN, desc = "Closed while in use, closed twice or never.")
  @State
  public static class UseAndRetire extends Idle {
    @Actor
    public void use(II_Result result) {
      result.r1 = use();
    }

    @Actor
    public void give() {
      cached.retire();
    }

    @Arbiter
    public void look(II_Result result) {
      result.r2 = closed.get();
    }
  }

  /** Two threads retire it while a third uses it. */
  @JCStressTest
  @Outcome(id = "1, 1, 0", expect = ACCEPTABLE, desc = "Used, then closed once.")
  @Outcome(id = "0, 1, 0", expect = ACCEPTABLE, desc = "Closed once, not used.")
  @Outcome(expect = FORBIDDEN, desc = "Closed in use, twice or never, or leased again.")
  @State
  public static class TwoRetire extends Idle {
    @Actor
    public void use(III_Result result) {
      result.r1 = use();
    }

    @Actor
    public void give() {
      cached.retire();
    }

    @Actor
    public void giveToo() {
      cached.retire();
    }

    @Arbiter
    public void look(III_Result result) {
      result.r2 = closed.get();
      result.r3 = cached.lease() ? 1 : 0;
    }
  }
}
