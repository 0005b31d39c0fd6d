package io.weft.crosshost.gpu;

import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import io.weft.collectives.Topology;
import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Operation;
import io.weft.device.Event;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * The host communicator of a clique of GPUs. Its type shows that it does not move GPU memory.
 *
 * @param hosts moves host memory only; closed with this one
 * @param mayMap whether the ends try to map each other's memory before they stage arrays; the same
 *     at both ends
 * @param mapped receives the result: the reason of a failure, or an empty text
 */
record HostRoute(Communicator hosts, boolean mayMap, Consumer<String> mapped)
    implements Communicator {
  @Override
  public int rank() {
    return hosts.rank();
  }

  @Override
  public int nranks() {
    return hosts.nranks();
  }

  @Override
  public UniqueId id() {
    return hosts.id();
  }

  @Override
  public Duration timeout() {
    return hosts.timeout();
  }

  @Override
  public Topology topology() {
    return hosts.topology();
  }

  @Override
  public CollectiveMetrics metrics() {
    return hosts.metrics();
  }

  @Override
  public void run(Operation operation) {
    hosts.run(operation);
  }

  @Override
  public void runGroup(List<Operation> operations) {
    hosts.runGroup(operations);
  }

  @Override
  public Event submit(Operation operation, Lane lane) {
    return hosts.submit(operation, lane);
  }

  @Override
  public Event submitGroup(List<Operation> operations, Lane lane) {
    return hosts.submitGroup(operations, lane);
  }

  @Override
  public Optional<CollectiveException> failure() {
    return hosts.failure();
  }

  @Override
  public void abort(String reason) {
    hosts.abort(reason);
  }

  @Override
  public void close() {
    hosts.close();
  }
}
