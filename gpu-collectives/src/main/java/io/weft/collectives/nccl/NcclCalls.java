package io.weft.collectives.nccl;

import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.DataType;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.Receive;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.EngineStaging.StagedBuffers;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import java.util.List;

/**
 * Turns operations into calls of NCCL. Operations that only move elements move them as bytes.
 * Confined to the thread of the communicator.
 */
final class NcclCalls {
  private static final int BYTES = 0;

  private final NcclComm comm;
  private final CudaStream stream;
  private final int rank;
  private final int nranks;

  NcclCalls(NcclComm comm, CudaStream stream, int rank, int nranks) {
    this.comm = comm;
    this.stream = stream;
    this.rank = rank;
    this.nranks = nranks;
  }

  static int type(DataType type) {
    return switch (type) {
      case INT8 -> 0;
      case INT32 -> 2;
      case INT64 -> 4;
      case FLOAT32 -> 7;
      case FLOAT64 -> 8;
      default -> throw new IllegalArgumentException("NCCL does not reduce " + type + " exactly");
    };
  }

  static int op(ReduceOp op) {
    return switch (op) {
      case SUM -> 0;
      case PRODUCT -> 1;
      case MAX -> 2;
      case MIN -> 3;
      case AVERAGE -> throw new IllegalArgumentException("NCCL does not average exactly");
    };
  }

  /**
   * Enqueues a collective whose buffers are on the device.
   *
   * @param ragged the layouts of all ranks, for a ragged all-to-all
   */
  void collective(Operation operation, StagedBuffers staged, List<RaggedLayout> ragged) {
    switch (operation.kind()) {
      case ALL_REDUCE -> allReduce((AllReduce) operation, staged);
      case REDUCE -> reduce((Reduce) operation, staged);
      case BROADCAST -> broadcast((Broadcast) operation, staged);
      case ALL_GATHER -> allGather((AllGather) operation, staged);
      case REDUCE_SCATTER -> reduceScatter((ReduceScatter) operation, staged);
      case ALL_TO_ALL -> allToAll((AllToAll) operation, staged);
      case GATHER -> gather((Gather) operation, staged);
      case SCATTER -> scatter((Scatter) operation, staged);
      case RAGGED_ALL_TO_ALL -> raggedAllToAll((RaggedAllToAll) operation, staged, ragged);
      default -> throw new IllegalArgumentException(operation.kind() + " moves nothing");
    }
  }

  private void allReduce(AllReduce operation, StagedBuffers staged) {
    comm.check(
        NcclFunctions.ncclAllReduce(
            staged.deviceAddress(operation.send()),
            staged.deviceAddress(operation.receive()),
            operation.send().count(),
            type(operation.send().type()),
            op(operation.op()),
            comm.handle(),
            stream.handle()),
        "ncclAllReduce");
  }

  private void reduce(Reduce operation, StagedBuffers staged) {
    comm.check(
        NcclFunctions.ncclReduce(
            staged.deviceAddress(operation.send()),
            operation.root() == rank ? staged.deviceAddress(operation.receive()) : 0,
            operation.send().count(),
            type(operation.send().type()),
            op(operation.op()),
            operation.root(),
            comm.handle(),
            stream.handle()),
        "ncclReduce");
  }

  private void broadcast(Broadcast operation, StagedBuffers staged) {
    comm.check(
        NcclFunctions.ncclBroadcast(
            operation.root() == rank ? staged.deviceAddress(operation.send()) : 0,
            staged.deviceAddress(operation.receive()),
            operation.receive().bytes(),
            BYTES,
            operation.root(),
            comm.handle(),
            stream.handle()),
        "ncclBroadcast");
  }

  private void allGather(AllGather operation, StagedBuffers staged) {
    comm.check(
        NcclFunctions.ncclAllGather(
            staged.deviceAddress(operation.send()),
            staged.deviceAddress(operation.receive()),
            operation.send().bytes(),
            BYTES,
            comm.handle(),
            stream.handle()),
        "ncclAllGather");
  }

  private void reduceScatter(ReduceScatter operation, StagedBuffers staged) {
    comm.check(
        NcclFunctions.ncclReduceScatter(
            staged.deviceAddress(operation.send()),
            staged.deviceAddress(operation.receive()),
            operation.receive().count(),
            type(operation.receive().type()),
            op(operation.op()),
            comm.handle(),
            stream.handle()),
        "ncclReduceScatter");
  }

  /** In place, a part could be overwritten before it is sent, so a copy is sent. */
  private void allToAll(AllToAll operation, StagedBuffers staged) {
    long bytes = operation.send().bytes();
    long from = staged.deviceAddress(operation.send());
    long to = staged.deviceAddress(operation.receive());
    if (from == to) {
      CudaMemory copy = staged.scratch(bytes);
      stream.copyOnDevice(copy.address(), from, bytes);
      from = copy.address();
    }
    long part = bytes / nranks;
    long source = from;
    group(
        () -> {
          for (int peer = 0; peer < nranks; peer++) {
            send(source + peer * part, part, peer);
            receive(to + peer * part, part, peer);
          }
        });
  }

  private void gather(Gather operation, StagedBuffers staged) {
    long part = operation.send().bytes();
    group(
        () -> {
          send(staged.deviceAddress(operation.send()), part, operation.root());
          for (int peer = 0; operation.root() == rank && peer < nranks; peer++) {
            receive(staged.deviceAddress(operation.receive()) + peer * part, part, peer);
          }
        });
  }

  private void scatter(Scatter operation, StagedBuffers staged) {
    long part = operation.receive().bytes();
    group(
        () -> {
          for (int peer = 0; operation.root() == rank && peer < nranks; peer++) {
            send(staged.deviceAddress(operation.send()) + peer * part, part, peer);
          }
          receive(staged.deviceAddress(operation.receive()), part, operation.root());
        });
  }

  private void raggedAllToAll(
      RaggedAllToAll operation, StagedBuffers staged, List<RaggedLayout> layouts) {
    RaggedLayout own = operation.layout();
    long row = own.rowElements() * operation.send().type().bytes();
    int updates = own.updates(nranks);
    long from = staged.deviceAddress(operation.send());
    long to = staged.deviceAddress(operation.receive());
    group(
        () -> {
          for (int entry = 0; entry < own.entries(); entry++) {
            send(from + own.sendOffset(entry) * row, own.sendSize(entry) * row, entry / updates);
          }
          for (int peer = 0; peer < nranks; peer++) {
            RaggedLayout theirs = layouts.get(peer);
            for (int entry = rank * updates; entry < (rank + 1) * updates; entry++) {
              receive(to + theirs.targetOffset(entry) * row, theirs.sendSize(entry) * row, peer);
            }
          }
        });
  }

  /** Enqueues sends and receives as one group. */
  void pairs(List<Operation> operations, StagedBuffers staged) {
    group(() -> operations.forEach(each -> pair(each, staged)));
  }

  private void pair(Operation operation, StagedBuffers staged) {
    if (operation instanceof Send send) {
      send(staged.deviceAddress(send.buffer()), send.bytes(), send.peer());
    } else if (operation instanceof Receive receive) {
      TypedBuffer buffer = receive.buffer();
      receive(staged.deviceAddress(buffer), buffer.bytes(), receive.peer());
    }
  }

  /**
   * Ends the group even if a call fails: an open group would hold back the thread's later calls.
   */
  private void group(Runnable calls) {
    comm.check(NcclFunctions.ncclGroupStart(), "ncclGroupStart");
    try {
      calls.run();
    } catch (RuntimeException e) {
      int unused = NcclFunctions.ncclGroupEnd();
      throw e;
    }
    comm.check(NcclFunctions.ncclGroupEnd(), "ncclGroupEnd");
  }

  private void send(long address, long bytes, int peer) {
    if (bytes > 0) {
      comm.check(
          NcclFunctions.ncclSend(address, bytes, BYTES, peer, comm.handle(), stream.handle()),
          "ncclSend to rank " + peer);
    }
  }

  private void receive(long address, long bytes, int peer) {
    if (bytes > 0) {
      comm.check(
          NcclFunctions.ncclRecv(address, bytes, BYTES, peer, comm.handle(), stream.handle()),
          "ncclRecv from rank " + peer);
    }
  }
}
