package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.AllGather;
import io.weft.collectives.operation.AllReduce;
import io.weft.collectives.operation.AllToAll;
import io.weft.collectives.operation.Broadcast;
import io.weft.collectives.operation.Gather;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.RaggedAllToAll;
import io.weft.collectives.operation.Reduce;
import io.weft.collectives.operation.ReduceScatter;
import io.weft.collectives.operation.Scatter;

/**
 * Collectives among the ranks of one host. What fits a slot is done in one shot; of the rest, in
 * place what symmetric buffers allow, and staged or pairwise what they do not.
 *
 * <p>Every operation starts with an entry of all ranks, in which they compare what they are about
 * to do and learn which buffers are symmetric; so all choose the same way.
 */
final class SharedMemoryEngine implements CollectiveEngine {
  private final Island island;
  private final SymmetricTable table;
  private final int slotBytes;
  private final OneShotCollectives oneShot;
  private final StagedCollectives staged;
  private final InPlaceCollectives inPlace;
  private final PairwiseCollectives pairwise;

  /**
   * The engine of a host.
   *
   * @param members the ranks of this host, by their index on it
   */
  SharedMemoryEngine(Island island, SymmetricTable table, Members members, BufferSizes sizes) {
    this.island = island;
    this.table = table;
    this.slotBytes = sizes.slotBytes();
    Reductions reductions = new Reductions();
    this.oneShot = new OneShotCollectives(island, reductions);
    this.staged = new StagedCollectives(island, reductions, sizes.stageBytes());
    this.inPlace = new InPlaceCollectives(island, reductions, table);
    this.pairwise = new PairwiseCollectives(members);
  }

  @Override
  public Algorithm execute(Call call, Operation operation) {
    return switch (operation.kind()) {
      case BARRIER -> {
        oneShot.barrier(call);
        yield Algorithm.ONE_SHOT;
      }
      case ALL_REDUCE -> allReduce(call, (AllReduce) operation);
      case REDUCE -> reduce(call, (Reduce) operation);
      case REDUCE_SCATTER -> reduceScatter(call, (ReduceScatter) operation);
      case BROADCAST -> broadcast(call, (Broadcast) operation);
      case ALL_GATHER -> allGather(call, (AllGather) operation);
      case ALL_TO_ALL -> allToAll(call, (AllToAll) operation);
      case GATHER -> gather(call, (Gather) operation);
      case SCATTER -> scatter(call, (Scatter) operation);
      case RAGGED_ALL_TO_ALL -> raggedAllToAll(call, (RaggedAllToAll) operation);
      case SEND, RECEIVE ->
          throw new IllegalArgumentException(operation.kind() + " is not a collective");
    };
  }

  private boolean fitsSlot(long bytes) {
    return bytes <= slotBytes;
  }

  /** Enters with the places of the buffers. */
  private void enter(Call call, TypedBuffer send, TypedBuffer receive) {
    island.prepareEntry(call, table.describe(send), table.describe(receive));
    island.enter(call);
  }

  private Algorithm allReduce(Call call, AllReduce operation) {
    if (fitsSlot(operation.send().bytes())) {
      oneShot.allReduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), operation.receive());
    if (inPlace.reachesSends() && inPlace.reachesReceives()) {
      inPlace.allReduce(operation);
      return Algorithm.IN_PLACE;
    }
    staged.allReduce(operation);
    return Algorithm.STAGED;
  }

  private Algorithm reduce(Call call, Reduce operation) {
    if (fitsSlot(operation.send().bytes())) {
      oneShot.reduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), operation.receive());
    if (inPlace.reachesSends() && inPlace.reachesReceive(operation.root())) {
      inPlace.reduce(operation);
      return Algorithm.IN_PLACE;
    }
    staged.reduce(operation);
    return Algorithm.STAGED;
  }

  private Algorithm reduceScatter(Call call, ReduceScatter operation) {
    if (fitsSlot(operation.send().bytes())) {
      oneShot.reduceScatter(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), operation.receive());
    if (inPlace.reachesSends()) {
      inPlace.reduceScatter(operation);
      return Algorithm.IN_PLACE;
    }
    staged.reduceScatter(operation);
    return Algorithm.STAGED;
  }

  private Algorithm broadcast(Call call, Broadcast operation) {
    if (fitsSlot(operation.receive().bytes())) {
      oneShot.broadcast(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), operation.receive());
    if (inPlace.reachesSend(operation.root())) {
      inPlace.broadcast(operation.root(), operation.receive());
      return Algorithm.IN_PLACE;
    }
    staged.broadcast(operation);
    return Algorithm.STAGED;
  }

  private Algorithm allGather(Call call, AllGather operation) {
    TypedBuffer send = operation.send();
    if (fitsSlot(send.bytes())) {
      oneShot.allGather(call, send, operation.receive());
      return Algorithm.ONE_SHOT;
    }
    enterGathering(call, send, operation.receive());
    if (inPlace.reachesSends()) {
      inPlace.allGatherByReading(send, operation.receive());
      return Algorithm.IN_PLACE;
    }
    if (inPlace.reachesReceives()) {
      inPlace.allGatherByWriting(send);
      return Algorithm.IN_PLACE;
    }
    staged.allGather(operation);
    return Algorithm.STAGED;
  }

  /** What is read in place is moved to its own place here while the others are still coming. */
  private void enterGathering(Call call, TypedBuffer send, TypedBuffer receive) {
    long sends = table.describe(send);
    island.prepareEntry(call, sends, table.describe(receive));
    island.announce();
    if (sends != SymmetricTable.NONE) {
      InPlaceCollectives.copy(
          send.address(), receive.address() + island.me() * send.bytes(), send.bytes());
    }
    island.awaitEntries(call);
  }

  private Algorithm allToAll(Call call, AllToAll operation) {
    TypedBuffer send = operation.send();
    if (fitsSlot(send.bytes())) {
      oneShot.allToAll(call, send, operation.receive());
      return Algorithm.ONE_SHOT;
    }
    enterApart(call, send, operation.receive());
    if (inPlace.reachesSends()) {
      inPlace.allToAllByReading(send, operation.receive());
      return Algorithm.IN_PLACE;
    }
    if (inPlace.reachesReceives()) {
      inPlace.allToAllByWriting(send);
      return Algorithm.IN_PLACE;
    }
    pairwise.allToAll(call, operation);
    return Algorithm.PAIRWISE;
  }

  /** Of an all-to-all on one buffer nobody may read or write while its owner still does. */
  private void enterApart(Call call, TypedBuffer send, TypedBuffer receive) {
    if (send.overlaps(receive)) {
      island.prepareEntry(call, SymmetricTable.NONE, SymmetricTable.NONE);
      island.enter(call);
    } else {
      enter(call, send, receive);
    }
  }

  private Algorithm gather(Call call, Gather operation) {
    TypedBuffer send = operation.send();
    if (fitsSlot(send.bytes())) {
      oneShot.gather(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, send, operation.receive());
    if (inPlace.reachesSends()) {
      inPlace.gather(operation.root(), send, operation.receive());
      return Algorithm.IN_PLACE;
    }
    pairwise.gather(call, operation);
    return Algorithm.PAIRWISE;
  }

  private Algorithm scatter(Call call, Scatter operation) {
    TypedBuffer receive = operation.receive();
    if (fitsSlot(receive.bytes() * island.size())) {
      oneShot.scatter(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), receive);
    if (inPlace.reachesSend(operation.root())) {
      inPlace.scatter(operation.root(), receive);
      return Algorithm.IN_PLACE;
    }
    pairwise.scatter(call, operation);
    return Algorithm.PAIRWISE;
  }

  private Algorithm raggedAllToAll(Call call, RaggedAllToAll operation) {
    enter(call, operation.send(), operation.receive());
    if (inPlace.reachesReceives()) {
      pairwise.raggedAllToAllInPlace(call, operation, inPlace);
      return Algorithm.IN_PLACE;
    }
    pairwise.raggedAllToAll(call, operation);
    return Algorithm.PAIRWISE;
  }
}
