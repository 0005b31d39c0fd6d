package io.weft.collectives;

import java.util.List;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** The event of Java Flight Recorder for a collective operation or a group of operations. */
@Name("weft.Collective")
@Label("Collective")
@Description("A collective operation of this rank, or a group of operations that run together")
@Category("Weft")
@Enabled(false)
@StackTrace(false)
final class CollectiveEvent extends Event {
  private static final CollectiveEvent SWITCH = new CollectiveEvent();

  @Label("Operation")
  @Description("The kind of the first operation")
  String operation;

  @Label("Operations")
  @Description("Number of operations; more than 1 in a group")
  int operations;

  @Label("Algorithm")
  String algorithm;

  @Label("Bytes")
  @DataAmount
  long bytes;

  @Label("Wait for Other Ranks")
  @Timespan
  long waited;

  @Label("Rank")
  int rank;

  @Label("Ranks")
  int ranks;

  @Label("Communicator")
  String communicator;

  /** Begins an event. Returns null while no recording wants it, and then allocates nothing. */
  static CollectiveEvent start() {
    if (!SWITCH.isEnabled()) {
      return null;
    }
    CollectiveEvent event = new CollectiveEvent();
    event.begin();
    return event;
  }

  /** Writes the event of operations that have ended. */
  void finish(Communicator on, List<Operation> done, Algorithm by, long waitNanos) {
    end();
    operation = done.get(0).kind().name();
    operations = done.size();
    algorithm = by.name();
    bytes = done.stream().mapToLong(Operation::bytes).sum();
    waited = waitNanos;
    rank = on.rank();
    ranks = on.nranks();
    communicator = on.id().toString();
    commit();
  }
}
