package io.weft.examples.bench.collectives;

import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.AllGather;
import io.weft.collectives.operation.AllReduce;
import io.weft.collectives.operation.AllToAll;
import io.weft.collectives.operation.Broadcast;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.Reduce;
import io.weft.collectives.operation.ReduceScatter;
import io.weft.examples.measure.ProcessorTime;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;

/** Carries out orders on one rank. One thread. */
final class RankWork {
  private final Communicator communicator;
  private final RankBuffers buffers;

  RankWork(Communicator communicator, RankBuffers buffers) {
    this.communicator = communicator;
    this.buffers = buffers;
  }

  /** What an operation reads and writes. */
  private record Places(TypedBuffer send, TypedBuffer receive) {}

  private Places places(CollectiveCase test) {
    long parts = test.nranks();
    buffers.reserve(test.count() * parts * test.type().bytes());
    long sent = test.count() * (test.sendsParts() ? parts : 1);
    long received = test.count() * (test.receivesParts() ? parts : 1);
    TypedBuffer receive = buffers.receive(test.type(), received);
    if (!test.inPlace()) {
      return new Places(buffers.send(test.type(), sent), receive);
    }
    long own = communicator.rank() * test.count();
    return switch (test.operation()) {
      case ALL_GATHER -> new Places(receive.slice(own, test.count()), receive);
      case REDUCE_SCATTER -> {
        TypedBuffer send = buffers.receive(test.type(), sent);
        yield new Places(send, send.slice(own, test.count()));
      }
      default -> new Places(receive, receive);
    };
  }

  private Operation operation(CollectiveCase test, Places places) {
    TypedBuffer send = places.send();
    TypedBuffer receive = places.receive();
    return switch (test.operation()) {
      case ALL_REDUCE -> new AllReduce(send, receive, test.reduction());
      case ALL_GATHER -> new AllGather(send, receive);
      case REDUCE_SCATTER -> new ReduceScatter(send, receive, test.reduction());
      case ALL_TO_ALL -> new AllToAll(send, receive);
      case BROADCAST -> new Broadcast(receive, receive, 0);
      case REDUCE -> new Reduce(send, receive, test.reduction(), 0);
      default -> throw new IllegalArgumentException(test.operation() + " is not measured");
    };
  }

  /** Runs an operation again and again, all ranks together. */
  Timing time(CollectiveCase test, int iterations) {
    Operation operation = operation(test, places(test));
    Map<String, Long> before = calls();
    communicator.barrier();
    long cpuStart = ProcessorTime.nanos();
    long start = System.nanoTime();
    for (int i = 0; i < iterations; i++) {
      communicator.run(operation);
    }
    long nanos = System.nanoTime() - start;
    long cpuNanos = ProcessorTime.nanos() - cpuStart;
    return new Timing(nanos, cpuNanos, 0, mostUsedSince(before));
  }

  /** Runs it once on known values and counts the elements that are wrong. */
  Timing check(CollectiveCase test) {
    Places places = places(test);
    Map<String, Long> before = calls();
    KnownValues values = new KnownValues(test, communicator.rank());
    boolean broadcast = operation(test, places) instanceof Broadcast;
    values.fill(broadcast ? places.receive() : places.send());
    communicator.run(operation(test, places));
    return new Timing(0, 0, values.errors(places.receive()), mostUsedSince(before));
  }

  private Map<String, Long> calls() {
    Map<String, Long> calls = new HashMap<>();
    for (CollectiveMetrics.Line line : communicator.metrics().lines()) {
      calls.merge(line.algorithm().toString(), line.calls(), Long::sum);
    }
    return calls;
  }

  private String mostUsedSince(Map<String, Long> before) {
    return calls().entrySet().stream()
        .max(
            Comparator.comparingLong(
                entry -> entry.getValue() - before.getOrDefault(entry.getKey(), 0L)))
        .map(Map.Entry::getKey)
        .orElse("none");
  }
}
