package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.memory.Memory;
import java.util.Optional;

/**
 * Collectives among the ranks of one host. Small data is sent in one shot. Larger operations run in
 * place when symmetric buffers allow it, otherwise by the kernel's copy if all ranks can read each
 * other. Without it they run in one shot while the data fits a slot, then staged or pairwise.
 *
 * <p>Every operation starts with an entry of all ranks. In it they compare their operations and
 * learn which buffers are symmetric, so all choose the same algorithm. A rank of private buffers
 * deposits its data in the same entry, in case that all ranks have such buffers.
 */
final class SharedMemoryEngine implements CollectiveEngine {
  /** Up to here one shot is as fast as the work in place, whose end needs a sync. */
  private static final int SMALL_BYTES = 1 << 10;

  /** From here on a copy by the kernel is faster than the slots, in spite of its system call. */
  private static final int KERNEL_COPY_BYTES = 8 << 10;

  private final HostRanks host;
  private final SymmetricTable table;
  private final int slotBytes;
  private final OneShotCollectives oneShot;
  private final StagedCollectives staged;
  private final InPlaceCollectives inPlace;
  private final PairwiseCollectives pairwise;
  private final KernelCopyCollectives kernel;

  /**
   * The engine of a host.
   *
   * @param members the ranks of this host, by their index on it
   * @param kernel empty when a rank of the host cannot read the memory of the others
   */
  SharedMemoryEngine(
      HostRanks host,
      SymmetricTable table,
      RankGroup members,
      BufferSizes sizes,
      Optional<KernelCopyCollectives> kernel) {
    this.host = host;
    this.table = table;
    this.slotBytes = sizes.slotBytes();
    Reductions reductions = new Reductions();
    this.oneShot = new OneShotCollectives(host, reductions);
    this.staged = new StagedCollectives(host, reductions, sizes.stageBytes());
    this.inPlace = new InPlaceCollectives(host, reductions, table);
    this.pairwise = new PairwiseCollectives(members);
    this.kernel = kernel.orElse(null);
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

  private boolean isSmall(long bytes) {
    return bytes <= Math.min(SMALL_BYTES, slotBytes);
  }

  private boolean fitsSlot(long bytes) {
    return bytes <= slotBytes;
  }

  /** Publishes the descriptors of the buffers and enters. */
  private void enter(Call call, TypedBuffer send, TypedBuffer receive) {
    host.prepareEntry(call, table.describe(send), table.describe(receive));
    host.enter(call);
  }

  /**
   * Publishes the descriptors of the buffers and enters. If both are private, it also deposits what
   * one shot needs.
   *
   * @param deposit bytes of the send buffer, of all ranks that deposit; deposited if they fit a
   *     slot
   * @param deposits whether this rank deposits in one shot
   */
  private void enter(
      Call call, TypedBuffer send, TypedBuffer receive, long deposit, boolean deposits) {
    host.prepareEntry(call, table.describe(send), table.describe(receive));
    if (copiesByKernel(deposit)) {
      host.writeAddresses(send.address(), receive.address());
    } else if (deposits) {
      depositIfPrivate(send, deposit);
    }
    host.enter(call);
  }

  /** Whether operations that are not in place use copies by the kernel; the same on all ranks. */
  private boolean copiesByKernel(long bytes) {
    return kernel != null && bytes >= KERNEL_COPY_BYTES;
  }

  /** Deposits for the prepared entry, which tells whether the buffers are private. */
  private void depositIfPrivate(TypedBuffer send, long deposit) {
    if (fitsSlot(deposit) && !inPlace.reaches(host.me())) {
      Memory.copy(send.address(), host.block(host.me()).payload(host.stamp(), deposit), deposit);
    }
  }

  /**
   * Whether an entry that was not in place continues in one shot: on all ranks with the deposits of
   * this entry, if every rank's buffers are private, or with an entry of its own.
   */
  private boolean continuesInOneShot(long bytes) {
    if (!fitsSlot(bytes)) {
      return false;
    }
    oneShot.useDeposits(!copiesByKernel(bytes) && inPlace.reachesNone());
    return true;
  }

  private Algorithm allReduce(Call call, AllReduce operation) {
    long bytes = operation.send().bytes();
    if (isSmall(bytes)) {
      oneShot.allReduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), operation.receive(), bytes, true);
    if (inPlace.reachesSends() && inPlace.reachesReceives()) {
      inPlace.allReduce(operation);
      return Algorithm.IN_PLACE;
    }
    if (copiesByKernel(bytes)) {
      kernel.allReduce(call, operation);
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(bytes)) {
      oneShot.allReduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    staged.allReduce(operation);
    return Algorithm.STAGED;
  }

  private Algorithm reduce(Call call, Reduce operation) {
    long bytes = operation.send().bytes();
    if (isSmall(bytes)) {
      oneShot.reduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), operation.receive(), bytes, true);
    if (inPlace.reachesSends() && inPlace.reachesReceive(operation.root())) {
      inPlace.reduce(operation);
      return Algorithm.IN_PLACE;
    }
    if (continuesInOneShot(bytes)) {
      oneShot.reduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    staged.reduce(operation);
    return Algorithm.STAGED;
  }

  private Algorithm reduceScatter(Call call, ReduceScatter operation) {
    long bytes = operation.send().bytes();
    if (isSmall(bytes)) {
      oneShot.reduceScatter(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), operation.receive(), bytes, true);
    if (inPlace.reachesSends()) {
      inPlace.reduceScatter(operation);
      return Algorithm.IN_PLACE;
    }
    if (copiesByKernel(bytes)) {
      kernel.reduceScatter(call, operation);
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(bytes)) {
      oneShot.reduceScatter(call, operation);
      return Algorithm.ONE_SHOT;
    }
    staged.reduceScatter(operation);
    return Algorithm.STAGED;
  }

  private Algorithm broadcast(Call call, Broadcast operation) {
    long bytes = operation.receive().bytes();
    if (isSmall(bytes)) {
      oneShot.broadcast(call, operation);
      return Algorithm.ONE_SHOT;
    }
    boolean isRoot = operation.root() == host.me();
    enter(call, operation.send(), operation.receive(), bytes, isRoot);
    if (inPlace.reachesSend(operation.root())) {
      inPlace.broadcast(operation.root(), operation.receive());
      return Algorithm.IN_PLACE;
    }
    if (copiesByKernel(bytes)) {
      kernel.broadcast(call, operation.root(), operation.send(), operation.receive());
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(bytes)) {
      oneShot.broadcast(call, operation);
      return Algorithm.ONE_SHOT;
    }
    staged.broadcast(operation);
    return Algorithm.STAGED;
  }

  private Algorithm allGather(Call call, AllGather operation) {
    TypedBuffer send = operation.send();
    if (isSmall(send.bytes())) {
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
    if (copiesByKernel(send.bytes())) {
      kernel.allGather(call, send, operation.receive());
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(send.bytes())) {
      oneShot.allGather(call, send, operation.receive());
      return Algorithm.ONE_SHOT;
    }
    staged.allGather(operation);
    return Algorithm.STAGED;
  }

  /** Enters, and copies this rank's own part to its place while the others are still arriving. */
  private void enterGathering(Call call, TypedBuffer send, TypedBuffer receive) {
    host.prepareEntry(call, table.describe(send), table.describe(receive));
    boolean byKernel = copiesByKernel(send.bytes());
    if (byKernel) {
      host.writeAddresses(send.address(), receive.address());
    } else {
      depositIfPrivate(send, send.bytes());
    }
    host.announce();
    if (byKernel || inPlace.reachesSend(host.me())) {
      InPlaceCollectives.copy(
          send.address(), receive.address() + host.me() * send.bytes(), send.bytes());
    }
    host.awaitEntries(call);
  }

  private Algorithm allToAll(Call call, AllToAll operation) {
    TypedBuffer send = operation.send();
    if (isSmall(send.bytes())) {
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
    if (copiesByKernel(send.bytes()) && kernel.reachesSends()) {
      kernel.allToAll(call, send, operation.receive());
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(send.bytes())) {
      oneShot.allToAll(call, send, operation.receive());
      return Algorithm.ONE_SHOT;
    }
    pairwise.allToAll(call, operation);
    return Algorithm.PAIRWISE;
  }

  /**
   * Enters an all-to-all. When both buffers overlap, the entry hides them: no other rank may read
   * or write them while their owner still uses them.
   */
  private void enterApart(Call call, TypedBuffer send, TypedBuffer receive) {
    if (send.overlaps(receive)) {
      host.prepareEntry(call, SymmetricTable.NONE, SymmetricTable.NONE);
    } else {
      host.prepareEntry(call, table.describe(send), table.describe(receive));
    }
    if (copiesByKernel(send.bytes())) {
      host.writeAddresses(send.overlaps(receive) ? 0 : send.address(), receive.address());
    } else {
      depositIfPrivate(send, send.bytes());
    }
    host.enter(call);
  }

  private Algorithm gather(Call call, Gather operation) {
    TypedBuffer send = operation.send();
    if (isSmall(send.bytes())) {
      oneShot.gather(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, send, operation.receive(), send.bytes(), true);
    if (inPlace.reachesSends()) {
      inPlace.gather(operation.root(), send, operation.receive());
      return Algorithm.IN_PLACE;
    }
    if (copiesByKernel(send.bytes())) {
      kernel.gather(call, operation.root(), send, operation.receive());
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(send.bytes())) {
      oneShot.gather(call, operation);
      return Algorithm.ONE_SHOT;
    }
    pairwise.gather(call, operation);
    return Algorithm.PAIRWISE;
  }

  private Algorithm scatter(Call call, Scatter operation) {
    TypedBuffer receive = operation.receive();
    long bytes = receive.bytes() * host.size();
    if (isSmall(bytes)) {
      oneShot.scatter(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enter(call, operation.send(), receive, bytes, operation.root() == host.me());
    if (inPlace.reachesSend(operation.root())) {
      inPlace.scatter(operation.root(), receive);
      return Algorithm.IN_PLACE;
    }
    if (copiesByKernel(bytes)) {
      kernel.scatter(call, operation.root(), operation.send(), receive);
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(bytes)) {
      oneShot.scatter(call, operation);
      return Algorithm.ONE_SHOT;
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

  /**
   * Small operations. Every rank deposits the data that it sends in its slot, waits until all ranks
   * have done so, and reads from the slots of the others. See {@link
   * io.weft.collectives.Algorithm#ONE_SHOT}.
   */
  static final class OneShotCollectives {
    private final HostRanks host;
    private final Reductions reductions;
    private final long[] sources;
    private final long[] target = new long[1];
    private boolean deposited;

    OneShotCollectives(HostRanks host, Reductions reductions) {
      this.host = host;
      this.reductions = reductions;
      this.sources = new long[host.size()];
    }

    /**
     * Tells how the next operation starts.
     *
     * @param done whether all ranks have made its deposits in the current entry
     */
    void useDeposits(boolean done) {
      deposited = done;
    }

    /** Enters with these bytes in the slot, unless they were deposited in the current entry. */
    private void deposit(Call call, long address, long bytes) {
      if (deposited) {
        deposited = false;
        return;
      }
      host.prepareEntry(call, SymmetricTable.NONE, SymmetricTable.NONE);
      if (bytes > 0) {
        Memory.copy(address, payload(host.me(), bytes), bytes);
      }
      host.enter(call);
    }

    /** The address of a rank's deposit of this size. */
    private long payload(int index, long deposited) {
      return host.block(index).payload(host.stamp(), deposited);
    }

    void barrier(Call call) {
      deposit(call, 0, 0);
    }

    void allReduce(Call call, AllReduce operation) {
      long bytes = operation.send().bytes();
      deposit(call, operation.send().address(), bytes);
      reduce(operation.receive(), operation.op(), bytes, 0);
    }

    void reduce(Call call, Reduce operation) {
      long bytes = operation.send().bytes();
      deposit(call, operation.send().address(), bytes);
      if (operation.root() == host.me()) {
        reduce(operation.receive(), operation.op(), bytes, 0);
      }
    }

    void reduceScatter(Call call, ReduceScatter operation) {
      long bytes = operation.send().bytes();
      deposit(call, operation.send().address(), bytes);
      reduce(operation.receive(), operation.op(), bytes, host.me() * operation.receive().bytes());
    }

    private void reduce(TypedBuffer receive, ReduceOp op, long deposited, long offset) {
      for (int peer = 0; peer < sources.length; peer++) {
        sources[peer] = payload(peer, deposited) + offset;
      }
      target[0] = receive.address();
      reductions
          .of(receive.type(), op)
          .run(
              sources,
              sources.length,
              target,
              1,
              receive.count(),
              Reductions.divisor(op, sources.length));
    }

    void broadcast(Call call, Broadcast operation) {
      boolean isRoot = operation.root() == host.me();
      TypedBuffer receive = operation.receive();
      deposit(call, operation.send().address(), isRoot ? receive.bytes() : 0);
      if (!isRoot || !operation.send().sameAs(receive)) {
        Memory.copy(payload(operation.root(), receive.bytes()), receive.address(), receive.bytes());
      }
    }

    /** Also used by a gather, at its root. */
    void allGather(Call call, TypedBuffer send, TypedBuffer receive) {
      deposit(call, send.address(), send.bytes());
      take(receive, send.bytes(), send.bytes(), 0);
    }

    void gather(Call call, Gather operation) {
      deposit(call, operation.send().address(), operation.send().bytes());
      if (operation.root() == host.me()) {
        long bytes = operation.send().bytes();
        take(operation.receive(), bytes, bytes, 0);
      }
    }

    void scatter(Call call, Scatter operation) {
      boolean isRoot = operation.root() == host.me();
      TypedBuffer receive = operation.receive();
      deposit(call, operation.send().address(), isRoot ? operation.send().bytes() : 0);
      long part = host.me() * receive.bytes();
      long deposited = receive.bytes() * host.size();
      long from = payload(operation.root(), deposited) + part;
      Memory.copy(from, receive.address(), receive.bytes());
    }

    void allToAll(Call call, TypedBuffer send, TypedBuffer receive) {
      deposit(call, send.address(), send.bytes());
      long part = send.bytes() / host.size();
      take(receive, send.bytes(), part, host.me() * part);
    }

    /** Copies one part of every slot into the receive buffer, in rank order. */
    private void take(TypedBuffer receive, long deposited, long partBytes, long offset) {
      for (int peer = 0; peer < host.size(); peer++) {
        long from = payload(peer, deposited) + offset;
        Memory.copy(from, receive.address() + peer * partBytes, partBytes);
      }
    }
  }
}
