package io.weft.collectives.nccl;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.nccl.EngineStaging.StagedBuffers;
import io.weft.collectives.nccl.OperationAgreement.RaggedReceives;
import io.weft.collectives.nccl.PeerWindows.Place;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.device.cuda.CudaStream;
import java.util.List;

/**
 * Enqueues operations on the stream of an engine and finishes them once the stream has passed them.
 * Confined to the engine's thread.
 */
final class NcclLaunches {
  private final String name;
  private final OperationAgreement agreement;
  private final CudaStream stream;
  private final EngineStaging staging;
  private final NcclWaits waits;
  private final PeerWindows peers;
  private final int rank;
  private NcclComm comm;
  private NcclCalls calls;

  /** Whether enqueued operations become part of a graph. */
  private boolean capturing;

  NcclLaunches(
      String name,
      OperationAgreement agreement,
      CudaStream stream,
      EngineStaging staging,
      NcclWaits waits,
      PeerWindows peers) {
    this.name = name;
    this.agreement = agreement;
    this.stream = stream;
    this.staging = staging;
    this.waits = waits;
    this.peers = peers;
    this.rank = agreement.host().rank();
  }

  /** Sets the communicator for the following operations. */
  void useCommunicator(NcclComm ready) {
    comm = ready;
    calls = new NcclCalls(comm, stream, rank, agreement.host().nranks());
  }

  /** Sets whether the operations that follow become part of a graph. */
  void capturing(boolean isPartOfGraph) {
    capturing = isPartOfGraph;
  }

  /** Where this rank receives an operation that multicast can write; NONE within a graph. */
  Place multicastPlace(Operation operation) {
    if (!capturing && operation instanceof AllGather gather) {
      return peers.multicastPlace(gather.receive());
    }
    if (!capturing && operation instanceof Broadcast broadcast) {
      return peers.multicastPlace(broadcast.receive());
    }
    return Place.NONE;
  }

  /**
   * Enqueues a collective that all ranks have reached.
   *
   * @param receive where all ranks receive by multicast; NONE if they do not
   */
  Algorithm collective(Operation operation, Place receive, Deadline deadline) {
    if (operation instanceof RaggedAllToAll ragged) {
      launchRagged(ragged, deadline);
    } else if (receive.window() > 0) {
      writeToAll(operation, receive, deadline);
      return Algorithm.MULTICAST;
    } else if (operation.signature().count() > 0) {
      enqueue(operation, staged(operation, deadline), List.of(), deadline);
    }
    return Algorithm.NCCL;
  }

  private void writeToAll(Operation operation, Place receive, Deadline deadline) {
    long send = staged(operation, deadline).deviceAddress(operation.buffers().get(0));
    peers.writeToAll(operation, receive, send, deadline);
  }

  private StagedBuffers staged(Operation operation, Deadline deadline) {
    List<Operation> alone = List.of(operation);
    return staging.of(alone, rank, waits.until(alone, deadline));
  }

  private void enqueue(
      Operation operation, StagedBuffers staged, List<RaggedLayout> ragged, Deadline deadline) {
    calls.collective(operation, staged, ragged);
    comm.awaitReady(operation.signature().toString(), deadline, waits.watch());
  }

  /**
   * The devices write the rows themselves if all of them can and a graph does not fix the sizes.
   */
  private void launchRagged(RaggedAllToAll operation, Deadline deadline) {
    Place receive = capturing ? Place.NONE : peers.place(operation.receive());
    RaggedReceives arrivals = agreement.exchangeLayouts(operation, receive);
    StagedBuffers staged = staged(operation, deadline);
    if (arrivals.areShared()) {
      peers.write(operation, staged.deviceAddress(operation.send()), arrivals, deadline);
    } else {
      enqueue(operation, staged, arrivals.layouts(), deadline);
    }
  }

  /** Enqueues sends and receives as one group. The ranks compare sizes meanwhile. */
  void pairs(List<Operation> operations, Deadline deadline) {
    List<Operation> moving = operations.stream().filter(op -> op.bytes() > 0).toList();
    if (!moving.isEmpty()) {
      calls.pairs(moving, staging.of(moving, rank, waits.until(moving, deadline)));
    }
    agreement.checkPairs(operations);
    if (!moving.isEmpty()) {
      comm.awaitReady("a group of sends and receives", deadline, waits.watch());
    }
  }

  /** Enqueues a step of a graph during capture. The ranks agree on it as in a normal run. */
  void captured(List<Operation> step, boolean collective, Deadline deadline) {
    if (!collective) {
      pairs(step, deadline);
      return;
    }
    for (Operation each : step) {
      Place receive = agreement.checkCollective(each, Place.NONE);
      Algorithm unused = collective(each, receive, deadline);
    }
  }

  /** Waits for NCCL, then copies the results to the host. After a failure, no copy starts. */
  void finish(List<Operation> operations, Deadline deadline) {
    try (CudaMark mark = stream.mark()) {
      waits.until(operations, deadline).until(mark);
    }
    comm.isReady(name);
    peers.check();
    staging.copyBack(waits.until(operations, deadline));
    release();
  }

  /** Frees the staging memory in use. Call this when the stream has passed the operations. */
  void release() {
    peers.release();
    staging.release();
  }
}
