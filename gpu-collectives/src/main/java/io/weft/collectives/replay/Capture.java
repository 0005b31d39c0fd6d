package io.weft.collectives.replay;

import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import io.weft.collectives.Topology;
import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Operation;
import io.weft.device.Event;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A communicator that records the operations it is called with and runs none of them. One thread at
 * a time.
 */
final class Capture implements Communicator {
  private final Communicator communicator;
  private final List<Step> steps = new ArrayList<>();
  private boolean closed;

  Capture(Communicator communicator) {
    this.communicator = communicator;
  }

  List<Step> steps() {
    return List.copyOf(steps);
  }

  @Override
  public int rank() {
    return communicator.rank();
  }

  @Override
  public int nranks() {
    return communicator.nranks();
  }

  @Override
  public UniqueId id() {
    return communicator.id();
  }

  @Override
  public Duration timeout() {
    return communicator.timeout();
  }

  @Override
  public Topology topology() {
    return communicator.topology();
  }

  @Override
  public CollectiveMetrics metrics() {
    return communicator.metrics();
  }

  @Override
  public void run(Operation operation) {
    runGroup(List.of(operation));
  }

  @Override
  public void runGroup(List<Operation> operations) {
    if (closed) {
      throw CollectiveException.invalid("the recording has ended; run this on the communicator");
    }
    for (Operation operation : operations) {
      operation.check(rank(), nranks());
    }
    if (!operations.isEmpty()) {
      steps.add(new Step(operations));
    }
  }

  @Override
  public Event submit(Operation operation, Lane lane) {
    throw submitted();
  }

  @Override
  public Event submitGroup(List<Operation> operations, Lane lane) {
    throw submitted();
  }

  private static CollectiveException submitted() {
    return CollectiveException.invalid(
        "a recording has one order and no lanes; run the operation, and submit the recording");
  }

  @Override
  public Optional<CollectiveException> failure() {
    return communicator.failure();
  }

  @Override
  public void abort(String reason) {
    communicator.abort(reason);
  }

  /** Ends the recording; the real communicator stays open. */
  @Override
  public void close() {
    closed = true;
  }
}
