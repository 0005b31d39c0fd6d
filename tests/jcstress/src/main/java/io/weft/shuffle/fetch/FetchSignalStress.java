package io.weft.shuffle.fetch;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.weft.shuffle.fetch.PeerQueue.EventSignal;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A reader takes a transfer out of its queue while new signals of it arrive. It must see them at
 * once, or find the transfer in the queue again.
 */
@JCStressTest
@Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "Seen at once.")
@Outcome(id = "[01], 1", expect = ACCEPTABLE, desc = "In the queue again, seen before or not.")
@Outcome(expect = FORBIDDEN, desc = "A signal that is never read, or twice in the queue.")
@State
public class FetchSignalStress {
  private final EventSignal signal = new EventSignal();
  private final AtomicInteger queued = new AtomicInteger();
  private volatile int news;

  /** Starts with one signal. */
  public FetchSignalStress() {
    raise();
  }

  private void raise() {
    if (signal.raise()) {
      queued.incrementAndGet();
    }
  }

  @Actor
  public void arrive() {
    news = 1;
    raise();
  }

  @Actor
  public void handle(II_Result result) {
    queued.decrementAndGet();
    signal.clear();
    result.r1 = news;
  }

  @Arbiter
  public void look(II_Result result) {
    result.r2 = queued.get();
  }
}
