package io.weft.collectives.local;

import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.AllGather;
import io.weft.collectives.operation.AllReduce;
import io.weft.collectives.operation.AllToAll;
import io.weft.collectives.operation.Broadcast;
import io.weft.collectives.operation.Gather;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.RaggedAllToAll;
import io.weft.collectives.operation.RaggedLayout;
import io.weft.collectives.operation.Reduce;
import io.weft.collectives.operation.ReduceScatter;
import io.weft.collectives.operation.Scatter;
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
}
