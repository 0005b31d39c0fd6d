package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Division;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.PointToPoint.RankGroup;
import java.util.Optional;

/**
 * Collectives among the ranks of one host. Small data is sent in one shot. Larger operations run in
 * place when symmetric buffers allow it. Otherwise they run in one shot while the data fits a slot,
 * then staged. Large gathers, scatters and parts of many ranks go by the kernel's copy if all ranks
 * can read each other, or else pairwise. Two ranks measure whether that copy is faster than stages.
 *
 * <p>Every operation starts with an entry of all ranks. In it they compare their operations and
 * learn which buffers are symmetric, so all choose the same algorithm. A rank of private buffers
 * deposits its data in the same entry, in case that all ranks have such buffers.
 */
final class SharedMemoryEngine implements CollectiveEngine {
  /** Up to here one shot is as fast as the work in place, whose end needs a sync. */
  private static final int SMALL_BYTES = 512;

  /**
   * As {@link #SMALL_BYTES}, if the host has more ranks than processors: a sync then costs switches
   * between ranks.
   */
  private static final int SMALL_BYTES_WHEN_CROWDED = 8 << 10;

  /**
   * Up to here the slots are as fast as a copy by the kernel or faster, if every rank reads all
   * that another deposits. That depends on how near to each other the processors are: measured 0.7
   * to 1.9 times as fast at the limit.
   */
  private static final int MAX_DEPOSIT = 32 << 10;

  /**
   * As {@link #MAX_DEPOSIT}, if every rank reads a part of it and ranks take turns on processors.
   */
  private static final int MAX_DEPOSIT_WHEN_CROWDED = 64 << 10;

  /** As {@link #MAX_DEPOSIT}, for ragged rows, if the host has enough processors for its ranks. */
  private static final int MAX_RAGGED_DEPOSIT = 16 << 10;

  /** As {@link #MAX_DEPOSIT}, for a reduction, of which stages let every rank do a part only. */
  private static final int MAX_DEPOSIT_TO_REDUCE = 32 << 10;

  /**
   * Up to here stages are faster than the kernel for an all-to-all of many ranks, whose pieces are
   * the shorter the more ranks there are.
   */
  private static final int MAX_STAGED_PARTS = 1 << 20;

  /**
   * As {@link #MAX_STAGED_PARTS}, if ranks take turns on processors: every chunk then costs
   * switches between ranks. Measured at four times the limit: two thirds of the time.
   */
  private static final int MAX_STAGED_PARTS_WHEN_CROWDED = 64 << 10;

  private final HostRanks host;
  private final SymmetricTable table;
  private final int slotBytes;
  private final int smallBytes;
  private final int raggedBytes;
  private final int mostOfParts;
  private final int stagedBesideKernel;
  private final OneShotCollectives oneShot;
  private final StagedCollectives staged;
  private final InPlaceCollectives inPlace;
  private final PairwiseCollectives pairwise;
  private final RaggedCollectives.Deposits raggedDeposits;
  private final KernelCopyCollectives kernel;

  /** Null for more than two ranks, and if one cannot read the memory of the other. */
  private final KernelCopyTrial trial;

  /**
   * The engine of a host.
   *
   * @param members the ranks of this host, by their index on it
   * @param crowded whether the host has more ranks than processors; the same on all ranks
   * @param kernel empty when a rank of the host cannot read the memory of the others
   * @param trial empty then, and for more than two ranks
   */
  SharedMemoryEngine(
      HostRanks host,
      SymmetricTable table,
      RankGroup members,
      BufferSizes sizes,
      boolean crowded,
      Optional<KernelCopyCollectives> kernel,
      Optional<KernelCopyTrial> trial) {
    this.host = host;
    this.table = table;
    this.slotBytes = sizes.slotBytes();
    this.smallBytes = Math.min(slotBytes, crowded ? SMALL_BYTES_WHEN_CROWDED : SMALL_BYTES);
    this.mostOfParts = crowded ? MAX_DEPOSIT_WHEN_CROWDED : MAX_DEPOSIT;
    this.stagedBesideKernel = crowded ? MAX_STAGED_PARTS_WHEN_CROWDED : MAX_STAGED_PARTS;
    this.raggedBytes = kernel.isEmpty() || crowded ? slotBytes : MAX_RAGGED_DEPOSIT;
    Reductions reductions = new Reductions();
    this.oneShot = new OneShotCollectives(host, reductions);
    this.staged = new StagedCollectives(host, reductions, sizes.stageBytes());
    this.inPlace = new InPlaceCollectives(host, reductions, table);
    this.pairwise = new PairwiseCollectives(members);
    RaggedCollectives ragged = new RaggedCollectives(members);
    this.raggedDeposits = new RaggedCollectives.Deposits(host, ragged, staged, slotBytes);
    this.kernel = kernel.orElse(null);
    this.trial = trial.orElse(null);
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
    return bytes <= smallBytes;
  }

  private boolean fitsSlot(long bytes) {
    return bytes <= slotBytes;
  }

  /**
   * Publishes the descriptors of the buffers and enters. For copies by the kernel it also publishes
   * the address of what it sends. Otherwise, if both are private, it deposits what one shot needs.
   *
   * @param deposit bytes of the send buffer that this rank deposits in one shot, if they fit
   * @param ownBytes of this rank's part of the deposit, which no other rank reads; 0 if all is read
   */
  private void enter(
      Call call,
      TypedBuffer send,
      TypedBuffer receive,
      boolean byKernel,
      long deposit,
      long ownBytes) {
    host.prepareEntry(call, table.describe(send), table.describe(receive));
    if (byKernel) {
      host.writeAddress(send.address());
    } else {
      depositIfPrivate(send, deposit, ownBytes);
    }
    host.enter(call);
  }

  /** Whether an operation that is not in place uses copies by the kernel; the same on all ranks. */
  private boolean copiesByKernel(long bytes, int maxDeposit) {
    return kernel != null && bytes > maxDeposit;
  }

  /** Whether two ranks may exchange this many bytes by the kernel; the same on both. */
  private boolean mayPreferKernel(long bytes) {
    return trial != null && trial.mayPreferKernel(bytes);
  }

  /**
   * Deposits for the prepared entry, which tells whether the buffers are private.
   *
   * @param ownBytes of this rank's part, which no other rank reads; 0 if all is read
   */
  private void depositIfPrivate(TypedBuffer send, long deposit, long ownBytes) {
    if (fitsSlot(deposit) && !inPlace.reaches(host.me())) {
      oneShot.put(send.address(), deposit, ownBytes);
    }
  }

  private boolean continuesInOneShot(long bytes) {
    return continuesInOneShot(bytes, true);
  }

  /**
   * Whether an operation that is not in place continues in one shot. If the buffers of all ranks
   * are private, it uses the deposits of this entry, and otherwise an entry of its own.
   *
   * @param deposited whether ranks of private buffers have deposited
   */
  private boolean continuesInOneShot(long bytes, boolean deposited) {
    boolean fits = fitsSlot(bytes);
    oneShot.useDeposits(fits && deposited && inPlace.reachesNone());
    return fits;
  }

  private Algorithm allReduce(Call call, AllReduce operation) {
    long bytes = operation.send().bytes();
    if (isSmall(bytes)) {
      oneShot.allReduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enterReducing(call, operation.send(), operation.receive(), StagedCollectives.NONE);
    if (inPlace.reachesSends() && inPlace.reachesReceives()) {
      inPlace.allReduce(operation);
      return Algorithm.IN_PLACE;
    }
    if (reducesInOneShot(bytes) && continuesInOneShot(bytes)) {
      oneShot.allReduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    staged.allReduce(operation, inPlace.reachesNone());
    return Algorithm.STAGED;
  }

  private boolean reducesInOneShot(long bytes) {
    return bytes <= MAX_DEPOSIT_TO_REDUCE && fitsSlot(bytes);
  }

  /**
   * Enters. A rank of private buffers deposits them, or stages their first chunk.
   *
   * @param onlyRoot the only rank that takes results, or none
   */
  private void enterReducing(Call call, TypedBuffer send, TypedBuffer receive, int onlyRoot) {
    host.prepareEntry(call, table.describe(send), table.describe(receive));
    if (reducesInOneShot(send.bytes())) {
      depositIfPrivate(send, send.bytes(), 0);
    } else if (!inPlace.reaches(host.me())) {
      staged.stageFirst(send, onlyRoot);
    }
    host.enter(call);
  }

  private Algorithm reduce(Call call, Reduce operation) {
    long bytes = operation.send().bytes();
    if (isSmall(bytes)) {
      oneShot.reduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    enterReducing(call, operation.send(), operation.receive(), operation.root());
    if (inPlace.reachesSends() && inPlace.reachesReceive(operation.root())) {
      inPlace.reduce(operation);
      return Algorithm.IN_PLACE;
    }
    if (reducesInOneShot(bytes) && continuesInOneShot(bytes)) {
      oneShot.reduce(call, operation);
      return Algorithm.ONE_SHOT;
    }
    staged.reduce(operation, inPlace.reachesNone());
    return Algorithm.STAGED;
  }

  private Algorithm reduceScatter(Call call, ReduceScatter operation) {
    long bytes = operation.send().bytes();
    if (isSmall(bytes)) {
      oneShot.reduceScatter(call, operation);
      return Algorithm.ONE_SHOT;
    }
    long part = operation.receive().bytes();
    enter(call, operation.send(), operation.receive(), false, bytes, part);
    if (inPlace.reachesSends()) {
      inPlace.reduceScatter(operation);
      return Algorithm.IN_PLACE;
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
    long deposit = operation.root() == host.me() ? bytes : 0;
    enter(call, operation.send(), operation.receive(), false, deposit, 0);
    if (inPlace.reachesSend(operation.root())) {
      inPlace.broadcast(operation.root(), operation.receive());
      return Algorithm.IN_PLACE;
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
    boolean byKernel = mayPreferKernel(operation.receive().bytes());
    enterGathering(call, send, operation.receive(), byKernel);
    if (inPlace.reachesSends()) {
      inPlace.allGatherByReading(send, operation.receive());
      return Algorithm.IN_PLACE;
    }
    if (inPlace.reachesReceives()) {
      inPlace.allGatherByWriting(send);
      return Algorithm.IN_PLACE;
    }
    if (byKernel && trial.prefersKernel(call, operation.receive().bytes())) {
      kernel.allGather(call, send, operation.receive());
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(send.bytes(), !byKernel)) {
      oneShot.allGather(call, send, operation.receive());
      return Algorithm.ONE_SHOT;
    }
    staged.allGather(operation);
    return Algorithm.STAGED;
  }

  /** Enters, and copies this rank's own part to its place while the others are still arriving. */
  private void enterGathering(Call call, TypedBuffer send, TypedBuffer receive, boolean byKernel) {
    host.prepareEntry(call, table.describe(send), table.describe(receive));
    if (byKernel) {
      host.writeAddress(send.address());
    } else {
      depositIfPrivate(send, send.bytes(), 0);
    }
    host.announce();
    if (inPlace.reachesSend(host.me())) {
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
    boolean byKernel =
        host.size() == 2
            ? mayPreferKernel(send.bytes())
            : copiesByKernel(send.bytes(), stagedBesideKernel);
    enterApart(call, send, operation.receive(), byKernel);
    if (inPlace.reachesSends()) {
      inPlace.allToAllByReading(send, operation.receive());
      return Algorithm.IN_PLACE;
    }
    if (inPlace.reachesReceives()) {
      inPlace.allToAllByWriting(send);
      return Algorithm.IN_PLACE;
    }
    if (byKernel
        && kernel.reachesSends()
        && (trial == null || trial.prefersKernel(call, send.bytes()))) {
      kernel.allToAll(call, send, operation.receive());
      return Algorithm.KERNEL_COPY;
    }
    if (continuesInOneShot(send.bytes(), !byKernel)) {
      oneShot.allToAll(call, send, operation.receive());
      return Algorithm.ONE_SHOT;
    }
    if (host.size() == 2 || send.bytes() <= MAX_STAGED_PARTS) {
      staged.allToAll(send, operation.receive());
      return Algorithm.STAGED;
    }
    pairwise.allToAll(call, operation);
    return Algorithm.PAIRWISE;
  }

  /**
   * Enters an all-to-all. When both buffers overlap, the entry hides them: no other rank may read
   * or write them while their owner still uses them.
   */
  private void enterApart(Call call, TypedBuffer send, TypedBuffer receive, boolean byKernel) {
    if (send.overlaps(receive)) {
      host.prepareEntry(call, SymmetricTable.NONE, SymmetricTable.NONE);
    } else {
      host.prepareEntry(call, table.describe(send), table.describe(receive));
    }
    if (byKernel) {
      host.writeAddress(send.overlaps(receive) ? 0 : send.address());
    } else {
      depositIfPrivate(send, send.bytes(), Division.quotient(send.bytes(), host.size()));
    }
    host.enter(call);
  }

  private Algorithm gather(Call call, Gather operation) {
    TypedBuffer send = operation.send();
    if (isSmall(send.bytes())) {
      oneShot.gather(call, operation);
      return Algorithm.ONE_SHOT;
    }
    boolean byKernel = copiesByKernel(send.bytes(), MAX_DEPOSIT);
    enter(call, send, operation.receive(), byKernel, send.bytes(), 0);
    if (inPlace.reachesSends()) {
      inPlace.gather(operation.root(), send, operation.receive());
      return Algorithm.IN_PLACE;
    }
    if (byKernel) {
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
    boolean byKernel = copiesByKernel(bytes, mostOfParts);
    long deposit = operation.root() == host.me() ? bytes : 0;
    enter(call, operation.send(), receive, byKernel, deposit, 0);
    if (inPlace.reachesSend(operation.root())) {
      inPlace.scatter(operation.root(), receive);
      return Algorithm.IN_PLACE;
    }
    if (byKernel) {
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

  /** Enters with deposits of tables and few rows. */
  private Algorithm raggedAllToAll(Call call, RaggedAllToAll operation) {
    host.prepareEntry(call, table.describe(operation.send()), table.describe(operation.receive()));
    if (kernel != null) {
      host.writeAddress(operation.send().address());
    }
    raggedDeposits.put(operation, inPlace.reachesReceive(host.me()) ? smallBytes : raggedBytes);
    host.enter(call);
    return raggedDeposits.exchange(call, operation, inPlace, kernel, trial);
  }
}
