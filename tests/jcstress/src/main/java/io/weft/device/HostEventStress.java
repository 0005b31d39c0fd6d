package io.weft.device;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;

/** An event ends once, and each listener is called once, in any order of calls. */
final class HostEventStress {
  private HostEventStress() {}

  /** Two ends race: one wins, for the state and for the listener alike. */
  @JCStressTest
  @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Completed first.")
  @Outcome(id = "2, 2", expect = ACCEPTABLE, desc = "Failed first.")
  @Outcome(expect = FORBIDDEN, desc = "Two ends, or one that differs from the listener's.")
  @State
  public static class OneEnd {
    private final HostEvent event = new HostEvent("the work");
    private final AtomicInteger heard = new AtomicInteger();

    /** Registers the listener first. */
    public OneEnd() {
      event.whenDone(cause -> heard.addAndGet(cause == null ? 1 : 2));
    }

    @Actor
    public void complete() {
      event.complete();
    }

    @Actor
    public void fail() {
      event.fail(new IllegalStateException("failed"));
    }

    @Arbiter
    public void look(II_Result result) {
      result.r1 = event.state() == Event.State.COMPLETE ? 1 : 2;
      result.r2 = heard.get();
    }
  }

  /** A listener that is added while the event ends is called once. */
  @JCStressTest
  @Outcome(id = "1", expect = ACCEPTABLE, desc = "Called once.")
  @Outcome(expect = FORBIDDEN, desc = "Missed, or called twice.")
  @State
  public static class LateListener {
    private final HostEvent event = new HostEvent("the work");
    private final AtomicInteger heard = new AtomicInteger();

    @Actor
    public void listen() {
      event.whenDone(cause -> heard.incrementAndGet());
    }

    @Actor
    public void complete() {
      event.complete();
    }

    @Arbiter
    public void look(I_Result result) {
      result.r1 = heard.get();
    }
  }

  /** One thread ends an event that another records: listeners of both kinds are called once. */
  @JCStressTest
  @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Each called once.")
  @Outcome(expect = FORBIDDEN, desc = "Missed, or called twice.")
  @State
  public static class RecordedAndEnded {
    private final HostEvent event = new HostEvent("the work");
    private final AtomicInteger recorded = new AtomicInteger();
    private final AtomicInteger done = new AtomicInteger();

    /** Registers the listeners first. */
    public RecordedAndEnded() {
      event.whenRecorded(recorded::incrementAndGet);
      event.whenDone(cause -> done.incrementAndGet());
    }

    @Actor
    public void record() {
      event.record();
    }

    @Actor
    public void complete() {
      event.complete();
    }

    @Arbiter
    public void look(II_Result result) {
      result.r1 = recorded.get();
      result.r2 = done.get();
    }
  }

  /** A thread that sees the end also sees the work done before it. */
  @JCStressTest
  @Outcome(id = "-1", expect = ACCEPTABLE, desc = "Not complete yet.")
  @Outcome(id = "7", expect = ACCEPTABLE, desc = "Complete, with its work.")
  @Outcome(expect = FORBIDDEN, desc = "Complete, without its work.")
  @State
  public static class WorkIsVisible {
    private final HostEvent event = new HostEvent("the work");
    private int work;

    @Actor
    public void produce() {
      work = 7;
      event.complete();
    }

    @Actor
    public void consume(I_Result result) {
      result.r1 = event.state() == Event.State.COMPLETE ? work : -1;
    }
  }
}
