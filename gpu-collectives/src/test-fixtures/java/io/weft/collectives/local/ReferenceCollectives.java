package io.weft.collectives.local;

import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.DataType;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.arithmetic.Float16;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.List;

/** Defines the result of every collective, from the operations of all ranks at once. */
final class ReferenceCollectives {
  private ReferenceCollectives() {}

  /**
   * Computes the results of all ranks.
   *
   * @param ranks the operation of each rank, by rank
   * @throws CollectiveException when they disagree
   */
  static void compute(List<Operation> ranks) {
    checkAgreement(ranks);
    switch (ranks.get(0).kind()) {
      case ALL_REDUCE -> allReduce(all(ranks, AllReduce.class));
      case REDUCE -> reduce(all(ranks, Reduce.class));
      case BROADCAST -> broadcast(all(ranks, Broadcast.class));
      case ALL_GATHER -> allGather(all(ranks, AllGather.class));
      case REDUCE_SCATTER -> reduceScatter(all(ranks, ReduceScatter.class));
      case ALL_TO_ALL -> allToAll(all(ranks, AllToAll.class));
      case RAGGED_ALL_TO_ALL -> raggedAllToAll(all(ranks, RaggedAllToAll.class));
      case GATHER -> gather(all(ranks, Gather.class));
      case SCATTER -> scatter(all(ranks, Scatter.class));
      default -> {
        // A barrier: all ranks have arrived already.
      }
    }
  }

  private static void checkAgreement(List<Operation> ranks) {
    for (int rank = 1; rank < ranks.size(); rank++) {
      if (!ranks.get(rank).signature().equals(ranks.get(0).signature())) {
        throw new CollectiveException(
            CollectiveException.Kind.MISMATCH,
            List.of(0, rank),
            "rank 0 runs "
                + ranks.get(0).signature()
                + " but rank "
                + rank
                + " runs "
                + ranks.get(rank).signature());
      }
    }
  }

  private static <T extends Operation> List<T> all(List<Operation> ranks, Class<T> type) {
    return ranks.stream().map(type::cast).toList();
  }

  private static TypedBuffer[] sends(List<? extends Operation> ranks) {
    return ranks.stream().map(operation -> operation.buffers().get(0)).toArray(TypedBuffer[]::new);
  }

  private static void allReduce(List<AllReduce> ranks) {
    TypedBuffer[] sends = sends(ranks);
    ReduceOp op = ranks.get(0).op();
    TypedBuffer scratch = scratch(sends[0].slice(0, Math.min(1, sends[0].count())));
    for (long i = 0; i < sends[0].count(); i++) {
      Elements.reduce(sends, i, op, scratch, 0);
      for (AllReduce rank : ranks) {
        Elements.copy(scratch, 0, rank.receive(), i);
      }
    }
  }

  private static void reduce(List<Reduce> ranks) {
    TypedBuffer[] sends = sends(ranks);
    Reduce root = ranks.get(ranks.get(0).root());
    for (long i = 0; i < sends[0].count(); i++) {
      Elements.reduce(sends, i, root.op(), root.receive(), i);
    }
  }

  private static void broadcast(List<Broadcast> ranks) {
    TypedBuffer from = ranks.get(ranks.get(0).root()).send();
    for (Broadcast rank : ranks) {
      copy(from, 0, rank.receive(), 0, from.count());
    }
  }

  private static void allGather(List<AllGather> ranks) {
    for (AllGather to : ranks) {
      for (int from = 0; from < ranks.size(); from++) {
        TypedBuffer send = ranks.get(from).send();
        copy(send, 0, to.receive(), from * send.count(), send.count());
      }
    }
  }

  /** In place, a result overwrites only the element from which the same rank made it. */
  private static void reduceScatter(List<ReduceScatter> ranks) {
    TypedBuffer[] sends = sends(ranks);
    for (int rank = 0; rank < ranks.size(); rank++) {
      TypedBuffer receive = ranks.get(rank).receive();
      for (long i = 0; i < receive.count(); i++) {
        long index = rank * receive.count() + i;
        Elements.reduce(sends, index, ranks.get(rank).op(), receive, i);
      }
    }
  }

  private static void allToAll(List<AllToAll> ranks) {
    List<TypedBuffer> sends = ranks.stream().map(rank -> scratch(rank.send())).toList();
    long count = sends.get(0).count() / ranks.size();
    for (int to = 0; to < ranks.size(); to++) {
      for (int from = 0; from < ranks.size(); from++) {
        copy(sends.get(from), to * count, ranks.get(to).receive(), from * count, count);
      }
    }
  }

  private static void raggedAllToAll(List<RaggedAllToAll> ranks) {
    checkRagged(ranks);
    for (RaggedAllToAll from : ranks) {
      RaggedLayout layout = from.layout();
      long row = layout.rowElements();
      int updates = layout.updates(ranks.size());
      for (int entry = 0; entry < layout.entries(); entry++) {
        copy(
            from.send(),
            layout.sendOffset(entry) * row,
            ranks.get(entry / updates).receive(),
            layout.targetOffset(entry) * row,
            layout.sendSize(entry) * row);
      }
    }
  }

  private static void checkRagged(List<RaggedAllToAll> ranks) {
    for (int from = 0; from < ranks.size(); from++) {
      RaggedLayout sent = ranks.get(from).layout();
      int updates = sent.updates(ranks.size());
      for (int entry = 0; entry < sent.entries(); entry++) {
        int to = entry / updates;
        RaggedAllToAll target = ranks.get(to);
        target
            .layout()
            .checkArrival(
                from,
                to,
                entry % updates,
                ranks.size(),
                sent.sendSize(entry),
                sent.targetOffset(entry),
                target.receive().count() / sent.rowElements());
      }
    }
  }

  private static void gather(List<Gather> ranks) {
    TypedBuffer to = ranks.get(ranks.get(0).root()).receive();
    for (int from = 0; from < ranks.size(); from++) {
      TypedBuffer send = ranks.get(from).send();
      copy(send, 0, to, from * send.count(), send.count());
    }
  }

  private static void scatter(List<Scatter> ranks) {
    TypedBuffer from = ranks.get(ranks.get(0).root()).send();
    for (int to = 0; to < ranks.size(); to++) {
      TypedBuffer receive = ranks.get(to).receive();
      copy(from, to * receive.count(), receive, 0, receive.count());
    }
  }

  private static void copy(
      TypedBuffer from, long fromIndex, TypedBuffer to, long toIndex, long count) {
    int bytes = to.type().bytes();
    Memory.copy(from.address() + fromIndex * bytes, to.address() + toIndex * bytes, count * bytes);
  }

  /** Copies a buffer into direct memory that the garbage collector frees. */
  private static TypedBuffer scratch(TypedBuffer of) {
    TypedBuffer copy =
        TypedBuffer.wrap(ByteBuffer.allocateDirect(Math.toIntExact(of.bytes())), of.type());
    copy(of, 0, copy, 0, of.count());
    return copy;
  }

  /** Copies and reduces one element at a time: slow, but easy to verify. */
  static final class Elements {
    private Elements() {}

    /** Copies one element between buffers of one type. */
    static void copy(TypedBuffer from, long fromIndex, TypedBuffer to, long toIndex) {
      int bytes = from.type().bytes();
      Memory.copy(from.address() + fromIndex * bytes, to.address() + toIndex * bytes, bytes);
    }

    /** Writes the reduction of element index of all sources as element toIndex. */
    static void reduce(
        TypedBuffer[] sources, long index, ReduceOp op, TypedBuffer to, long toIndex) {
      DataType type = to.type();
      long address = to.address() + toIndex * type.bytes();
      switch (type) {
        case INT8 -> Memory.putByte(address, (byte) integers(sources, index, op));
        case INT16 -> Memory.putShort(address, (short) integers(sources, index, op));
        case INT32 -> Memory.putInt(address, (int) integers(sources, index, op));
        case INT64 -> Memory.putLong(address, integers(sources, index, op));
        case FLOAT16 -> Memory.putShort(address, Float16.fromFloat(floats(sources, index, op)));
        case BFLOAT16 -> Memory.putShort(address, BFloat16.fromFloat(floats(sources, index, op)));
        case FLOAT32 -> Memory.putFloat(address, floats(sources, index, op));
        case FLOAT64 -> Memory.putDouble(address, doubles(sources, index, op));
      }
    }

    private static long integers(TypedBuffer[] sources, long index, ReduceOp op) {
      long result = integer(sources[0], index);
      for (int rank = 1; rank < sources.length; rank++) {
        long value = integer(sources[rank], index);
        result =
            switch (op) {
              case SUM, AVERAGE -> result + value;
              case PRODUCT -> result * value;
              case MIN -> Math.min(result, value);
              case MAX -> Math.max(result, value);
            };
      }
      return op == ReduceOp.AVERAGE ? wrapped(result, sources[0].type()) / sources.length : result;
    }

    private static long wrapped(long value, DataType type) {
      return switch (type) {
        case INT8 -> (byte) value;
        case INT16 -> (short) value;
        case INT32 -> (int) value;
        default -> value;
      };
    }

    private static long integer(TypedBuffer buffer, long index) {
      long address = buffer.address() + index * buffer.type().bytes();
      return switch (buffer.type()) {
        case INT8 -> Memory.getByte(address);
        case INT16 -> Memory.getShort(address);
        case INT32 -> Memory.getInt(address);
        default -> Memory.getLong(address);
      };
    }

    private static float floats(TypedBuffer[] sources, long index, ReduceOp op) {
      float result = real(sources[0], index);
      for (int rank = 1; rank < sources.length; rank++) {
        float value = real(sources[rank], index);
        result =
            switch (op) {
              case SUM, AVERAGE -> result + value;
              case PRODUCT -> result * value;
              case MIN -> Math.min(result, value);
              case MAX -> Math.max(result, value);
            };
      }
      return op == ReduceOp.AVERAGE ? result / sources.length : result;
    }

    private static float real(TypedBuffer buffer, long index) {
      long address = buffer.address() + index * buffer.type().bytes();
      return switch (buffer.type()) {
        case FLOAT16 -> Float16.toFloat(Memory.getShort(address));
        case BFLOAT16 -> BFloat16.toFloat(Memory.getShort(address));
        default -> Memory.getFloat(address);
      };
    }

    private static double doubles(TypedBuffer[] sources, long index, ReduceOp op) {
      double result = Memory.getDouble(sources[0].address() + index * 8);
      for (int rank = 1; rank < sources.length; rank++) {
        double value = Memory.getDouble(sources[rank].address() + index * 8);
        result =
            switch (op) {
              case SUM, AVERAGE -> result + value;
              case PRODUCT -> result * value;
              case MIN -> Math.min(result, value);
              case MAX -> Math.max(result, value);
            };
      }
      return op == ReduceOp.AVERAGE ? result / sources.length : result;
    }
  }
}
