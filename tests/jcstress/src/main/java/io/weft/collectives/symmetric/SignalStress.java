package io.weft.collectives.symmetric;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A thread that reads a signal of at least a value also sees all data written before that value.
 */
final class SignalStress {
  private static final int DATA = 8;

  private SignalStress() {}

  /** Counter and data outside the heap, as in symmetric memory. */
  private static class Slot {
    private final ByteBuffer memory = ByteBuffer.allocateDirect(16);
    final long address = Memory.addressOf(memory);

    void write(int value, int data) {
      Memory.putInt(address + DATA, data);
      Memory.putIntRelease(address, value);
    }
  }

  /** The peer may be ahead: then its later data is visible, never its earlier data. */
  @JCStressTest
  @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "Before both.")
  @Outcome(id = "0, [12]", expect = ACCEPTABLE, desc = "Data of an earlier value.")
  @Outcome(id = "1, [12]", expect = ACCEPTABLE, desc = "At the first value, its data or newer.")
  @Outcome(id = "2, 2", expect = ACCEPTABLE, desc = "At the second value.")
  @Outcome(expect = FORBIDDEN, desc = "A signal before its data.")
  @State
  public static class Ahead extends Slot {
    @Actor
    public void raise() {
      write(1, 1);
      write(2, 2);
    }

    @Actor
    public void look(II_Result result) {
      result.r1 = Memory.getIntAcquire(address);
      result.r2 = Memory.getInt(address + DATA);
    }
  }

  /** The counter wraps around; "at least" still holds. */
  @JCStressTest
  @Outcome(id = "0, [01]", expect = ACCEPTABLE, desc = "Not signalled yet.")
  @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Signalled, with its data.")
  @Outcome(expect = FORBIDDEN, desc = "Signalled without its data.")
  @State
  public static class WrappedAround extends Slot {
    /** Starts at the last value before the counter turns negative. */
    public WrappedAround() {
      write(Integer.MAX_VALUE, 0);
    }

    @Actor
    public void raise() {
      write(Integer.MIN_VALUE, 1);
    }

    @Actor
    public void look(II_Result result) {
      int counter = Memory.getIntAcquire(address);
      result.r1 = SignalWait.reached(counter, Integer.MIN_VALUE) ? 1 : 0;
      result.r2 = Memory.getInt(address + DATA);
    }
  }
}
