package io.weft.examples.bench.collectives;

import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.Broadcast;
import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.Operation;
import io.weft.collectives.OperationKind;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.Recording;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.arithmetic.Float16;
import io.weft.collectives.bootstrap.FileBootstrap;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.examples.measure.ProcessorTime;
import io.weft.memory.Memory;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * The main class of a rank of {@link WeftSide}. It executes orders from standard input, a line
 * each, until its input ends. Orders and answers have the format of {@code mpi-collectives.c}; an
 * answer also names the algorithm.
 */
public final class RankMain {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);

  private RankMain() {}

  /** Takes the arguments of {@link RankOptions#arguments}. */
  public static void main(String[] arguments) throws IOException {
    RankOptions options = RankOptions.parse(arguments);
    try (Bootstrap bootstrap =
            FileBootstrap.open(options.work(), options.id(), options.rank(), options.nranks());
        Communicator communicator =
            new HostCommunicators(host(options))
                .create(bootstrap, CommunicatorOptions.DEFAULT.withTimeout(TIMEOUT))) {
      System.out.println("ready " + communicator.nranks());
      try (RankBuffers buffers = buffers(options, communicator)) {
        follow(new RankWork(communicator, buffers, options.kind() == RankOptions.Kind.RECORDED));
      }
    }
  }

  private static RankBuffers buffers(RankOptions options, Communicator communicator) {
    return options.kind() == RankOptions.Kind.SYMMETRIC
            || options.kind() == RankOptions.Kind.RECORDED
        ? new RankBuffers.SymmetricBuffers(communicator)
        : new RankBuffers.PrivateBuffers();
  }

  private static HostOptions host(RankOptions options) {
    HostOptions host = HostOptions.defaults().withFolder(options.memory());
    return options.kind() == RankOptions.Kind.TCP
        ? host.withHostIdentity("rank-" + options.rank())
        : host;
  }

  private static void follow(RankWork work) throws IOException {
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      String[] words = CollectiveCase.words(line);
      CollectiveCase test = CollectiveCase.parse(words, work.communicator.nranks());
      try {
        CollectiveSide.Timing timing =
            words[5].equals("1") ? work.check(test) : work.time(test, Integer.parseInt(words[6]));
        System.out.printf(
            "done %d %d %d %s%n",
            timing.nanos(), timing.cpuNanos(), timing.errors(), timing.algorithm());
      } catch (RuntimeException e) {
        e.printStackTrace();
        System.out.println("failed " + e.getMessage());
        return;
      }
    }
  }

  /** Executes orders on one rank. For one thread. */
  static final class RankWork {
    private final Communicator communicator;
    private final RankBuffers buffers;
    private final boolean recorded;

    /** The operations of a recording, each on buffers of its own. */
    private static final int RECORDED_STEPS = 50;

    /** The largest operation that is recorded. */
    static final long RECORDED_BYTES = 32 << 10;

    RankWork(Communicator communicator, RankBuffers buffers, boolean recorded) {
      this.communicator = communicator;
      this.buffers = buffers;
      this.recorded = recorded;
    }

    /** The buffers that an operation reads and writes. */
    private record Buffers(TypedBuffer send, TypedBuffer receive) {}

    private Buffers buffers(CollectiveCase test) {
      return buffers(test, 0, 1);
    }

    private Buffers buffers(CollectiveCase test, int step, int steps) {
      long parts = test.nranks();
      buffers.reserve(steps * test.bytes());
      long sent = test.count() * (test.sendsParts() ? parts : 1);
      long received = test.count() * (test.receivesParts() ? parts : 1);
      TypedBuffer receive =
          buffers.receive(test.type(), steps * received).slice(step * received, received);
      if (!test.inPlace()) {
        TypedBuffer send = buffers.send(test.type(), steps * sent).slice(step * sent, sent);
        return new Buffers(send, receive);
      }
      long own = communicator.rank() * test.count();
      return switch (test.operation()) {
        case ALL_GATHER -> new Buffers(receive.slice(own, test.count()), receive);
        case REDUCE_SCATTER -> {
          TypedBuffer send = buffers.receive(test.type(), steps * sent).slice(step * sent, sent);
          yield new Buffers(send, send.slice(own, test.count()));
        }
        default -> new Buffers(receive, receive);
      };
    }

    private Operation operation(CollectiveCase test, Buffers used) {
      TypedBuffer send = used.send();
      TypedBuffer receive = used.receive();
      return switch (test.operation()) {
        case ALL_REDUCE -> new AllReduce(send, receive, test.reduction());
        case ALL_GATHER -> new AllGather(send, receive);
        case REDUCE_SCATTER -> new ReduceScatter(send, receive, test.reduction());
        case ALL_TO_ALL -> new AllToAll(send, receive);
        case RAGGED_ALL_TO_ALL ->
            new RaggedAllToAll(send, receive, test.raggedParts().layout(communicator.rank()));
        case BROADCAST -> new Broadcast(receive, receive, 0);
        case REDUCE -> new Reduce(send, receive, test.reduction(), 0);
        default -> throw new IllegalArgumentException(test.operation() + " is not measured");
      };
    }

    /** Runs an operation repeatedly and returns the time; all ranks do so together. */
    CollectiveSide.Timing time(CollectiveCase test, int iterations) {
      if (!recorded) {
        Operation operation = operation(test, buffers(test));
        return time(() -> communicator.run(operation), iterations, 1);
      }
      try (Recording recording = record(test)) {
        int replays = (iterations + RECORDED_STEPS - 1) / RECORDED_STEPS;
        double part = iterations / ((double) replays * RECORDED_STEPS);
        return time(recording::replay, replays, part);
      }
    }

    /**
     * Measures repetitions.
     *
     * @param part of the time that is counted
     */
    private CollectiveSide.Timing time(Runnable work, int repetitions, double part) {
      Map<String, Long> before = calls();
      communicator.barrier();
      long cpuStart = ProcessorTime.nanos();
      long start = System.nanoTime();
      for (int i = 0; i < repetitions; i++) {
        work.run();
      }
      double nanos = (System.nanoTime() - start) * part;
      double cpuNanos = (ProcessorTime.nanos() - cpuStart) * part;
      return new CollectiveSide.Timing(
          Math.round(nanos), Math.round(cpuNanos), 0, mostUsedSince(before));
    }

    /** One operation, or those of a recording. */
    private List<Buffers> allBuffers(CollectiveCase test) {
      int steps = recorded ? RECORDED_STEPS : 1;
      return IntStream.range(0, steps).mapToObj(step -> buffers(test, step, steps)).toList();
    }

    private Recording record(CollectiveCase test) {
      List<Operation> operations =
          allBuffers(test).stream().map(each -> operation(test, each)).toList();
      return communicator.record(recorder -> operations.forEach(recorder::run));
    }

    /** Runs what is measured once on known values and counts the wrong elements. */
    CollectiveSide.Timing check(CollectiveCase test) {
      List<Buffers> used = allBuffers(test);
      Map<String, Long> before = calls();
      KnownValues values = new KnownValues(test, communicator.rank());
      boolean broadcast = test.operation() == OperationKind.BROADCAST;
      used.forEach(each -> values.fill(broadcast ? each.receive() : each.send()));
      if (recorded) {
        try (Recording recording = record(test)) {
          recording.replay();
        }
      } else {
        communicator.run(operation(test, used.get(0)));
      }
      long errors = used.stream().mapToLong(each -> values.errors(each.receive())).sum();
      return new CollectiveSide.Timing(0, 0, errors, mostUsedSince(before));
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

    /**
     * Small numbers that every rank can compute for all ranks. In a large buffer a million evenly
     * spread elements are set and compared. {@code mpi-collectives.c} uses the same numbers.
     */
    static final class KnownValues {
      private static final long COMPARED = 1 << 20;

      private final CollectiveCase test;
      private final int rank;
      private final long stride;

      KnownValues(CollectiveCase test, int rank) {
        this.test = test;
        this.rank = rank;
        this.stride = 1 + test.count() / COMPARED;
      }

      private static long value(long index, long ofRank) {
        return (index * 7 + ofRank * 3) % 11;
      }

      /** Sets the elements that this rank sends. */
      void fill(TypedBuffer send) {
        for (long start = 0; start < send.count(); start += test.count()) {
          for (long i = start; i < start + test.count(); i += stride) {
            put(send, i, value(i, rank));
          }
        }
      }

      /** Returns the number of wrong elements among the received ones. */
      long errors(TypedBuffer receive) {
        if (isReduceElsewhere()) {
          return 0;
        }
        long errors = 0;
        for (long start = 0; start < receive.count(); start += test.count()) {
          for (long i = start; i < start + test.count(); i += stride) {
            double expected = expected(i);
            if (Math.abs(get(receive, i) - expected) > Math.abs(expected) * rounding()) {
              errors++;
            }
          }
        }
        return errors;
      }

      private boolean isReduceElsewhere() {
        return switch (test.operation()) {
          case REDUCE -> rank != 0;
          default -> false;
        };
      }

      private double expected(long index) {
        long part = index / test.count();
        long within = index % test.count();
        return switch (test.operation()) {
          case ALL_GATHER -> value(within, part);
          case ALL_TO_ALL -> value(rank * test.count() + within, part);
          case REDUCE_SCATTER -> reduced(rank * test.count() + within);
          case RAGGED_ALL_TO_ALL -> value(index, test.raggedParts().sender(rank, index));
          case BROADCAST -> value(index, 0);
          default -> reduced(index);
        };
      }

      private double reduced(long index) {
        double all = value(index, 0);
        for (int other = 1; other < test.nranks(); other++) {
          double next = value(index, other);
          all =
              switch (test.reduction()) {
                case SUM, AVERAGE -> all + next;
                case PRODUCT -> all * next;
                case MIN -> Math.min(all, next);
                case MAX -> Math.max(all, next);
              };
        }
        return switch (test.reduction()) {
          case AVERAGE -> isInteger() ? Math.floor(all / test.nranks()) : all / test.nranks();
          default -> all;
        };
      }

      /** The relative error of a result, which the 16-bit floats round once. */
      private double rounding() {
        return switch (test.type()) {
          case INT8, INT16, INT32, INT64 -> 0;
          case BFLOAT16 -> 0x1p-8;
          case FLOAT16 -> 0x1p-11;
          case FLOAT32 -> 0x1p-20;
          case FLOAT64 -> 0x1p-48;
        };
      }

      private boolean isInteger() {
        return switch (test.type()) {
          case INT8, INT16, INT32, INT64 -> true;
          default -> false;
        };
      }

      private static void put(TypedBuffer buffer, long index, long value) {
        long address = buffer.address() + index * buffer.type().bytes();
        switch (buffer.type()) {
          case INT8 -> Memory.putByte(address, (byte) value);
          case INT16 -> Memory.putShort(address, (short) value);
          case INT32 -> Memory.putInt(address, (int) value);
          case INT64 -> Memory.putLong(address, value);
          case FLOAT16 -> Memory.putShort(address, Float16.fromFloat((float) value));
          case BFLOAT16 -> Memory.putShort(address, BFloat16.fromFloat((float) value));
          case FLOAT32 -> Memory.putFloat(address, (float) value);
          case FLOAT64 -> Memory.putDouble(address, (double) value);
        }
      }

      private static double get(TypedBuffer buffer, long index) {
        long address = buffer.address() + index * buffer.type().bytes();
        return switch (buffer.type()) {
          case INT8 -> Memory.getByte(address);
          case INT16 -> Memory.getShort(address);
          case INT32 -> Memory.getInt(address);
          case INT64 -> Memory.getLong(address);
          case FLOAT16 -> Float16.toFloat(Memory.getShort(address));
          case BFLOAT16 -> BFloat16.toFloat(Memory.getShort(address));
          case FLOAT32 -> Memory.getFloat(address);
          case FLOAT64 -> Memory.getDouble(address);
        };
      }
    }
  }
}
