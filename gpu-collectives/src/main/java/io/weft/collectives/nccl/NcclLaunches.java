package io.weft.collectives.nccl;

import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.nccl.EngineStaging.StagedBuffers;
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
  private final int rank;
  private NcclComm comm;
  private NcclCalls calls;

  NcclLaunches(
      String name,
      OperationAgreement agreement,
      CudaStream stream,
      EngineStaging staging,
      NcclWaits waits) {
    this.name = name;
    this.agreement = agreement;
    this.stream = stream;
    this.staging = staging;
    this.waits = waits;
    this.rank = agreement.host().rank();
  }

  /** Sets the communicator for the following operations. */
  void useCommunicator(NcclComm ready) {
    comm = ready;
    calls = new NcclCalls(comm, stream, rank, agreement.host().nranks());
  }

  /** Enqueues a collective that all ranks have reached. */
  void collective(Operation operation, Deadline deadline) {
    if (operation instanceof RaggedAllToAll ragged) {
      List<RaggedLayout> layouts = agreement.exchangeLayouts(ragged);
      enqueue(ragged, staged(ragged, deadline), layouts, deadline);
    } else if (operation.signature().count() > 0) {
      enqueue(operation, staged(operation, deadline), List.of(), deadline);
    }
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
      agreement.checkCollective(each);
      collective(each, deadline);
    }
  }

  /** Waits for NCCL, then copies the results to the host. After a failure, no copy starts. */
  void finish(List<Operation> operations, Deadline deadline) {
    try (CudaMark mark = stream.mark()) {
      waits.until(operations, deadline).until(mark);
    }
    comm.isReady(name);
    staging.copyBack(waits.until(operations, deadline));
    release();
  }

  /** Frees the staging memory in use. Call this when the stream has passed the operations. */
  void release() {
    staging.release();
  }
}
